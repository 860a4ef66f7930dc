"""How much work something is, without a clock: how many functions it calls, Python's own and those written in C."""

import sys
from collections.abc import Callable


def calls(run: Callable[[], object]) -> int:
    """Calls made by `run`. The same run makes the same number of them on any machine."""
    count = 0

    def note(frame: object, event: str, argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count
