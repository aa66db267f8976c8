"""A process that may lock 64 KiB and make no ring of reads: it reads a file and says how.

Started with the path of a file; prints whether reads were direct and the digest of what was read.
"""

import ctypes
import errno
import hashlib
import mmap
import resource
import struct
import sys

from runtime.store.files import WeightFiles

LOCKED_BYTES = 64 * 1024
READ_BYTES = 1024 * 1024
_IO_URING_SETUP = 425
_PR_SET_NO_NEW_PRIVS, _PR_SET_SECCOMP, _MODE_FILTER = 38, 22, 2
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000 | errno.EPERM


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def forbid_rings() -> None:
    """Let the kernel refuse to make rings of reads, and prove that it does."""
    system = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(
        b"".join(
            struct.pack("HBBI", *instruction)
            for instruction in (
                (_LOAD, 0, 0, 0),
                (_EQUAL, 0, 1, _IO_URING_SETUP),
                (_RETURN, 0, 0, _REFUSE),
                (_RETURN, 0, 0, _ALLOW),
            )
        )
    )
    program = _Program(4, ctypes.addressof(code))
    if system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0):
        sys.exit("no_new_privs was refused")
    if system.prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0):
        sys.exit("the filter was refused")
    if system.syscall(_IO_URING_SETUP, 1, 0) != -1 or ctypes.get_errno() != errno.EPERM:
        sys.exit("rings are still allowed")


def main(path: str) -> None:
    """Read a whole file in pages."""
    resource.setrlimit(resource.RLIMIT_MEMLOCK, (LOCKED_BYTES, LOCKED_BYTES))
    forbid_rings()
    files = WeightFiles([path])
    digest = hashlib.sha256()
    size_bytes = files.size_bytes(path)
    with mmap.mmap(-1, READ_BYTES) as mapping, memoryview(mapping) as room:
        for start in range(0, size_bytes, READ_BYTES):
            files.read(path, start, [room[: min(READ_BYTES, size_bytes - start)]])
            digest.update(room[: min(READ_BYTES, size_bytes - start)])
    sys.stdout.write(f"{files.is_direct} {files.num_bytes_read} {digest.hexdigest()}\n")
    files.close()


if __name__ == "__main__":
    main(sys.argv[1])
