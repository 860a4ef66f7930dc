"""Logging to standard error, as key=value lines or as one JSON object per line."""

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Literal, get_args

Level = Literal["debug", "info", "warning", "error"]
Format = Literal["text", "json"]
LEVELS: tuple[Level, ...] = get_args(Level)
FORMATS: tuple[Format, ...] = get_args(Format)


class JsonFormatter(logging.Formatter):
    """time, level, logger, message, and error with its traceback if there is one."""

    def format(self, record: logging.LogRecord) -> str:
        entry = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            entry["error"] = self.formatException(record.exc_info)
        return json.dumps(entry, ensure_ascii=False)


class TextFormatter(logging.Formatter):
    """time=... level=... logger=... msg="..."."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = json.dumps(record.getMessage(), ensure_ascii=False)
        line = f"time={time} level={record.levelname.lower()} logger={record.name} msg={message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


_DEBUGGING = 4
"""klog's level from which on messages are for debugging."""


def level_of(text: str) -> Level | None:
    """The level of a word, or of a number of klog; None: it is neither."""
    if text.isdecimal() and len(text) < 10:
        return "debug" if int(text) >= _DEBUGGING else "info"
    return next((level for level in LEVELS if level == text.lower()), None)


def level() -> Level:
    """That of the log now."""
    now = logging.getLogger().level
    return next((each for each in LEVELS if now <= getattr(logging, each.upper())), "error")


def set_level(level: str) -> None:
    """Of what is logged from now on."""
    root = logging.getLogger()
    root.setLevel(level.upper())
    # info messages of libraries are about their internals
    for name in ("asyncio", "aiohttp", "grpc", "kubernetes", "urllib3"):
        logging.getLogger(name).setLevel(max(logging.WARNING, root.level))


def configure(level: str, style: str) -> None:
    """Send all logs of the process to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)
