"""Durations on the command line."""

_LONGEST_S = 1e9


def parse_after(text: str) -> int | None:
    """Microseconds of the value of --reserve-after, which is seconds or `never`; None for `never`.

    Raises ValueError.
    """
    if text == "never":
        return None
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= _LONGEST_S:
        raise ValueError(f"is {text!r}; give seconds from 0 to {_LONGEST_S:.0f}, or never")
    return int(seconds * 1_000_000)
