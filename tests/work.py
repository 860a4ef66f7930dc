"""How much work something is, without a clock: how many functions it calls, Python's own and those written in C."""

from collections.abc import Callable
from cProfile import Profile


def calls(run: Callable[[], object]) -> int:
    """Calls made by `run`. The same run makes the same number of them on any machine."""
    profile = Profile()
    profile.runcall(run)
    return sum(entry.callcount for entry in profile.getstats())
