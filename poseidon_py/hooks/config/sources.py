"""Keys and header values that are read from files or environment variables, so that no configuration holds a secret.

A file is read again when it has changed: Kubernetes replaces the files of a mounted Secret while a process runs.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

log = logging.getLogger(__name__)

MIN_KEY_BYTES = 16
MAX_KEYS = 4
"""Keys of a file, one a line: the current one and those that are being exchanged."""


class SourceError(ValueError):
    """A file or an environment variable has no usable value; the message gives the remedy."""


@dataclass(slots=True)
class Source:
    """The lines of a file, of an environment variable, or a text."""

    file: Path | None = None
    variable: str = ""
    text: str = ""
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ, repr=False)
    _version: tuple[int, int, int] | None = field(default=None, repr=False)
    _lines: tuple[str, ...] = field(default=(), repr=False)

    def read(self) -> tuple[str, ...]:
        """The lines that are not empty, without white space around them; at least one. Raises SourceError."""
        if self.file is None:
            return self._usable(self._given(), f"environment variable {self.variable}" if self.variable else "the text")
        try:
            found = self.file.stat()
            version = found.st_mtime_ns, found.st_size, found.st_ino
            if version != self._version:
                lines = self._usable(self.file.read_text(encoding="utf-8"), f"file {self.file}")
                self._version, self._lines = version, lines
        except OSError as error:
            raise SourceError(
                f"cannot read {self.file}: {error.strerror}; correct the path or its permissions"
            ) from error
        except UnicodeDecodeError as error:
            raise SourceError(
                f"{self.file} is not text in UTF-8; save the value as text, such as hexadecimal"
            ) from error
        return self._lines

    def current(self) -> tuple[str, ...]:
        """The lines, or those read last if they cannot be read now. Raises SourceError if they never could."""
        try:
            return self.read()
        except SourceError as error:
            if not self._lines:
                raise
            log.warning("%s; using the value that was read before", error)
            return self._lines

    def _given(self) -> str:
        if not self.variable:
            return self.text
        if self.variable not in self.environment:
            raise SourceError(f"there is no environment variable {self.variable}; set it, or correct the name")
        return self.environment[self.variable]

    @staticmethod
    def _usable(text: str, what: str) -> tuple[str, ...]:
        lines = tuple(line.strip() for line in text.splitlines() if line.strip())
        if not lines:
            raise SourceError(f"{what} is empty; give it a value")
        return lines


def keys_of(source: Source) -> tuple[bytes, ...]:
    """The keys of signatures, the current one first. Raises SourceError."""
    lines = source.current()
    if len(lines) > MAX_KEYS:
        raise SourceError(f"has {len(lines)} keys, one on each line; give at most {MAX_KEYS}")
    keys = tuple(line.encode() for line in lines)
    if min(map(len, keys)) < MIN_KEY_BYTES:
        raise SourceError(f"has a key of less than {MIN_KEY_BYTES} bytes; make one with `openssl rand -hex 32`")
    return keys
