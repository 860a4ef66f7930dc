"""Values of users in messages."""

_LONGEST = 60
"""Characters of a value."""


def quoted(value: object) -> str:
    """A value as messages show it: cut off if it is long."""
    if value is None:
        return "empty"
    try:
        text = repr(value)
    except ValueError:  # a whole number of thousands of digits
        return "a number of too many digits"
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
