"""Calls that are due later."""

from typing import Any, Protocol


class Timer(Protocol):
    """Of one such call, as asyncio's `call_later` returns it."""

    def cancel(self) -> Any: ...
