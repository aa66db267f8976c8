"""`make bench-packages`: from starting the packaged program to its window's first picture.

`make installer` has made the AppImage in `dist`. It is started mounted, unpacked into the cache
before, and as the folder that it holds; each is started as often with its own files out of the
system's memory as with them in it. Only with Xvfb; a mount needs FUSE.
"""

from __future__ import annotations

import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from reporting import load_averages, row, write_result
from screen import a_screen
from shown import Watch

ROOT = Path(__file__).resolve().parent.parent
NUM_RUNS = 5
TARGET_S = 3.0
MAX_START_S = 60.0
MAX_UNPACKING_S = 600.0
_KEPT = ("PATH", "LANG", "DISPLAY", "QT_QPA_PLATFORM")


def forget(files: list[Path]) -> None:
    """Have the system forget what it keeps of files in its memory."""
    for path in files:
        file = os.open(path, os.O_RDONLY)
        try:
            os.fsync(file)
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
        finally:
            os.close(file)


def one_start(program: Path, environment: dict[str, str], max_s: float = MAX_START_S) -> float:
    """Return the seconds from starting the program until its window shows a picture."""
    with Watch(environment["DISPLAY"], "Larder") as watch:
        begun_s = time.perf_counter()
        with subprocess.Popen(
            [program], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        ) as child:
            try:
                watch.wait(max_s)
                taken_s = time.perf_counter() - begun_s
            finally:  # else one that shows no window would be waited for without end
                child.send_signal(signal.SIGTERM)
    return taken_s


def measure(
    what: str, program: Path, files: list[Path], environment: dict[str, str]
) -> list[dict[str, object]]:
    """Start a program again and again, warm and cold; return the lines of the result."""
    one_start(program, environment)
    warm = [one_start(program, environment) for _ in range(NUM_RUNS)]
    cold = []
    for _ in range(NUM_RUNS):
        forget(files)
        cold.append(one_start(program, environment))
    rows = []
    for state, times in (("warm", warm), ("its files not in memory", cold)):
        median_s = statistics.median(times)
        print(f"{what}, {state}: {median_s:.2f} s ({min(times):.2f}-{max(times):.2f})", flush=True)
        rows.append(
            row(
                what=f"{what}, start to the window's first picture, {state}, seconds, "
                f"median of {NUM_RUNS}",
                ours=round(median_s, 3),
                target=f"under {TARGET_S:g}",
                is_reached=median_s < TARGET_S,
            )
        )
        rows.append(row(what=f"the same, worst of {NUM_RUNS}", ours=round(max(times), 3)))
    return rows


def main() -> int:
    """Measure, print, write `benchmarks/results/packages.json`."""
    given = [Path(word).resolve() for word in sys.argv[1:]]
    found = given or sorted((ROOT / "dist").glob("*.AppImage"))
    if len(found) != 1 or shutil.which("Xvfb") is None:
        raise SystemExit("this needs Xvfb and one AppImage in dist; make installer makes it")
    (image,) = found
    load_before = load_averages()
    rows = []
    with tempfile.TemporaryDirectory() as home, a_screen(Path(home)) as screen:
        plain = {name: screen[name] for name in _KEPT if name in screen} | {"HOME": home}
        if os.access("/dev/fuse", os.R_OK | os.W_OK) and shutil.which("fusermount3"):
            rows += measure("AppImage, mounted", image, [image], plain)
        else:
            print("FUSE cannot be used here, so that nothing is mounted")
        unpacked = plain | {"APPIMAGE_EXTRACT_AND_RUN": "1"}
        one_start(image, unpacked, MAX_UNPACKING_S)
        (tree,) = (Path(home) / ".cache" / "larder" / "program").iterdir()
        files = [path for path in tree.rglob("*") if path.is_file() and not path.is_symlink()]
        rows += measure("AppImage, unpacked before", image, files, unpacked)
        rows += measure("folder", tree / "larder", files, plain)
    path = write_result("packages", rows, load_before=load_before)
    print(f"the result is in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
