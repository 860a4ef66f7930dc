"""Memory that is given back."""

import ctypes

import pytest

from poseidon_py.util.process.free_memory import give_back_freed_memory


@pytest.mark.parametrize("library", [object(), None], ids=["another allocator", "no library"])
def test_without_glibc_nothing_happens(monkeypatch, library):
    def load(name: str | None) -> object:
        if library is None:
            raise OSError("no such library")
        return library

    monkeypatch.setattr(ctypes, "CDLL", load)
    give_back_freed_memory()


def test_glibc_is_asked_to_keep_nothing(monkeypatch):
    asked: list[int] = []

    class Library:
        malloc_trim = asked.append

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library)
    give_back_freed_memory()
    assert asked == [0]
