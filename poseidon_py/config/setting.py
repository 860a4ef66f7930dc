"""The annotations of settings: types with ranges, and the help."""

from typing import Annotated, Literal

from msgspec import Meta

Positive = Annotated[float, Meta(gt=0)]
NotNegative = Annotated[float, Meta(ge=0)]
Count = Annotated[int, Meta(ge=1)]
Basis = Literal["requests", "used", "larger"]


def setting(text: str, *, metavar: str = "", flag: bool = True, shown: str = "") -> Meta:
    """The annotation of a field.

    `text`: the help. `metavar`: the placeholder of the value in the help, of a duration `SECONDS`. `flag`: whether it
    is a flag. `shown`: the default in the help, if the value here is None because the default is defined elsewhere.
    """
    return Meta(description=text, extra={"metavar": metavar, "flag": flag, "shown": shown})
