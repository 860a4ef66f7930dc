"""Memory that is given back."""

import ctypes

import pytest

from poseidon_py.util.process.free_memory import give_back_after_bursts, give_back_freed_memory


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


async def test_memory_is_given_back_in_the_first_quiet_minute_after_a_burst():
    """The counts at the start and after each minute; the numbers of the minutes at whose end memory was given back."""
    counts = iter([0, 0, 700, 999, 999, 1600, 1600, 1600, 2599, 2599, 2600, 2600])
    minutes: list[float] = []
    given: list[int] = []

    class Over(Exception):
        pass

    def done() -> int:
        try:
            return next(counts)
        except StopIteration:
            raise Over from None

    async def sleep(seconds: float) -> None:
        minutes.append(seconds)

    with pytest.raises(Over):
        await give_back_after_bursts(done, sleep, lambda: given.append(len(minutes)))
    # 999 are few; 1,600 are quiet in minute 6; since then 999 are few again, and 1,000 are quiet in minute 11
    assert given == [6, 11]
    assert set(minutes) == {60.0}
