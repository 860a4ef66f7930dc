"""Gives memory back that a process has freed."""

import ctypes
from contextlib import suppress


def give_back_freed_memory() -> None:
    """What a start needs once, such as pages of lists, otherwise stays with the allocator. Where that is not glibc's,
    nothing happens."""
    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)
