"""The checksum of records: zlib's CRC-32, by whichever code here is fastest."""

try:
    from zlib_ng.zlib_ng import crc32
except ImportError:
    # A system that the faster code was not built for: the same sums take longer.
    from zlib import crc32

__all__ = ["crc32"]
