"""Splits a stream into lines of bounded length."""

MAX_LINE = 16 << 20
"""Bytes. An API server takes objects of at most 3 MiB."""


class Lines:
    """`feed` it with the pieces of the stream, cut anywhere."""

    def __init__(self, limit: int = MAX_LINE) -> None:
        self._limit = limit
        self._partial = bytearray()
        self._skipping = False
        self.skipped = 0
        """Number of lines that exceeded the limit and were dropped."""

    def feed(self, piece: bytes) -> bytes:
        """The lines that this piece completes, each with its newline; empty if there are none."""
        start = 0
        if self._skipping:
            start = piece.find(b"\n") + 1
            if not start:
                return b""
            self._skipping = False
        end = max(piece.rfind(b"\n") + 1, start)
        lines = b""
        if end > start:
            lines = bytes(self._partial) + piece[start:end] if self._partial else piece[start:end]
            self._partial.clear()
        self._partial += piece[end:]
        if len(self._partial) > self._limit:
            self._partial.clear()
            self._skipping = True
            self.skipped += 1
        return lines
