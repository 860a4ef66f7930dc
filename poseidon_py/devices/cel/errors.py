"""What is wrong with an expression, or with its evaluation for one device."""


class SelectorError(ValueError):
    """An expression is refused, or cannot be evaluated for a device.

    `position` is the offset in characters from the start of the expression, None where the whole is meant.
    """

    def __init__(self, message: str, position: int | None = None) -> None:
        super().__init__(message, position)
        self.message = message
        self.position = position

    def __str__(self) -> str:
        return self.message if self.position is None else f"{self.message} (at character {self.position + 1})"


class EvaluationError(SelectorError):
    """A value of CEL's kind `error`: `&&`, `||` and the macros built on them may absorb it."""


class LimitError(SelectorError):
    """The evaluation is stopped because of its cost; nothing absorbs this."""
