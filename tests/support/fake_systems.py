"""Trees of files like Linux' ``/proc`` and ``/sys``, written below a test's own folder."""

from pathlib import Path

from runtime.hardware.system_files import SystemFiles

MIB = 1024**2
GIB = 1024**3


def system(root: Path, tree: dict[str, str | int]) -> SystemFiles:
    """Write the files of a tree by absolute name, and return the system that they make up."""
    for name, content in tree.items():
        path = root / name.lstrip("/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{content}\n", encoding="utf-8")
    return SystemFiles(root)


def mount_line(mount_point: str, kind: str, *, shown: str = "/", options: str = "rw") -> str:
    """Return a line of ``mountinfo``."""
    return f"35 23 0:28 {shown} {mount_point} rw,nosuid - {kind} {kind} {options}"
