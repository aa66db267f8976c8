"""The private ends of the channel, taken from the standard streams before anything else runs.

This module imports nothing that could print, and is the first that the process imports.
"""

import os
import sys


def claim_streams() -> tuple[int, int]:
    """Return private handles of the standard input and output, and close both to everybody else.

    Afterwards standard input is empty and standard output goes where standard error goes, so that
    no print and no child process can reach the channel.
    """
    read_fd, write_fd = os.dup(0), os.dup(1)
    for private in (read_fd, write_fd):
        os.set_inheritable(private, False)
        _use_binary(private)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    os.dup2(2 if _is_open(2) else null, 1)
    if not _is_open(2):
        os.dup2(null, 2)
    if null > 2:
        os.close(null)
    _reset_standard_handles()
    _renew_text_streams()
    return read_fd, write_fd


def send_output_to(log_fd: int) -> None:
    """Make standard output and error append to an open file, and close that handle."""
    os.dup2(log_fd, 1)
    os.dup2(log_fd, 2)
    if log_fd > 2:
        os.close(log_fd)
    _reset_standard_handles()
    _renew_text_streams()


def _is_open(fd: int) -> bool:
    try:
        os.fstat(fd)
    except OSError:
        return False
    return True


def _renew_text_streams() -> None:
    """Point Python's own streams at the new handles; they may be missing without a console."""
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:
            stream.flush()
    sys.stdout = sys.stderr = open(  # noqa: SIM115 - for the rest of the process
        2, "w", encoding="utf-8", errors="backslashreplace", buffering=1, closefd=False
    )


def _use_binary(fd: int) -> None:
    """Stop Windows from translating line ends."""
    if sys.platform == "win32":
        import msvcrt

        msvcrt.setmode(fd, os.O_BINARY)


def _reset_standard_handles() -> None:
    """Tell Windows, too, what the standard streams are now; its own libraries ask it."""
    if sys.platform == "win32":
        import ctypes
        import msvcrt

        for number, fd in ((-10, 0), (-11, 1), (-12, 2)):
            ctypes.windll.kernel32.SetStdHandle(number, msvcrt.get_osfhandle(fd))
