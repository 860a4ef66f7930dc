"""Runs a click command inside the test's own process: quick, where a process of its own is not the point."""

import gc
import logging
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager

import click
from click.testing import CliRunner, Result


def invoke(command: click.Command, *arguments: str) -> Result:
    """Output, exit code and exception of the command. One that belongs to a group has the flags of its help, which
    click makes when they are first asked for and keeps."""
    with _process_state_restored():
        return CliRunner().invoke(command, arguments, help_option_names=["-h", "--help"])


@contextmanager
def _process_state_restored() -> Iterator[None]:
    """Restores what a command sets for the rest of its process: signal handlers, logs, garbage collection."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    loggers = [logging.getLogger(), *map(logging.getLogger, ("asyncio", "aiohttp", "grpc", "kubernetes", "urllib3"))]
    levels = [logger.level for logger in loggers]
    log_handlers, thresholds = logging.root.handlers[:], gc.get_threshold()
    grpc_verbosity = os.environ.get("GRPC_VERBOSITY")
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        logging.root.handlers[:] = log_handlers
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        gc.set_threshold(*thresholds)
        if grpc_verbosity is None:
            os.environ.pop("GRPC_VERBOSITY", None)
