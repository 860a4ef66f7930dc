"""The service's log on standard error: key=value lines, or one JSON object per line for log collectors."""

import json
import logging
import os
import platform
import sys
from datetime import UTC, datetime

from firmament_py.version import VERSION

log = logging.getLogger(__name__)

LEVELS = ("debug", "info", "warning", "error")
FORMATS = ("text", "json")


class JsonFormatter(logging.Formatter):
    """Writes the keys of `poseidon run --log-format json`, which prints the lines of its service with its own."""

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
    """Writes the lines of `poseidon run --log-format text`."""

    def format(self, record: logging.LogRecord) -> str:
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        message = json.dumps(record.getMessage(), ensure_ascii=False)
        line = f"time={time} level={record.levelname.lower()} logger={record.name} msg={message}"
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(level: str, style: str) -> None:
    """Sends log records of this level and above to standard error, as `text` or `json`."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonFormatter() if style == "json" else TextFormatter())
    logging.basicConfig(level=level.upper(), handlers=[handler])


def begin(level: str, style: str) -> None:
    """`configure`, and the first line."""
    configure(level, style)
    log.info("firmament %s starts on Python %s, pid %d", VERSION, platform.python_version(), os.getpid())
