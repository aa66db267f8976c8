"""What a file really is when it is not what its name says."""

GGUF_MARK = b"GGUF"
_LFS_MARK = b"version https://git-lfs"
"""How a Git LFS pointer begins: the text that stands for a file that was not downloaded."""
START_BYTES = 256
"""So much of a file's beginning is enough to tell."""
_PICKLES = (b"PK\x03\x04", b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_MAX_QUOTED = 60


def mistaken_for(start: bytes) -> str:
    """Return what a file that begins with ``start`` is instead of JSON, as a reason; may be empty.

    Ask only after the file proved not to be what was expected: a header can begin like anything.
    """
    if not start:
        return "it is empty"
    if not start.strip(b"\0"):
        return "it begins with nothing but zeros, so its download is not complete"
    if start.startswith(_LFS_MARK):
        return "it is a Git LFS pointer of a few bytes, the download is not complete"
    # A header of such a beginning would be longer than 4 GiB, so none is taken for something else.
    is_absurd = any(start[4:8])
    if is_absurd and start.startswith(_PICKLES):
        return "it is a pickle file under another name, which is never opened as it can run code"
    if is_absurd and start.startswith(GGUF_MARK):
        return "it is a GGUF file under another name"
    if start.lstrip(b"\xef\xbb\xbf \t\r\n").startswith((b"<!", b"<?", b"<h", b"<H")):
        return "it is a web page that a server sent in its place"
    return ""


def mistaken_for_text(start: bytes) -> str:
    """Return what a file of numbers that begins with ``start`` is instead; may be empty."""
    reason = mistaken_for(start)
    if reason or not all(32 <= byte < 127 or byte in b"\r\n\t" for byte in start):
        return reason
    words = " ".join(start.decode("ascii").split())
    quoted = words if len(words) <= _MAX_QUOTED else words[: _MAX_QUOTED - 1] + "…"
    return f"it is a text, perhaps a server's message: “{quoted}”"
