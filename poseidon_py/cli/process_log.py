"""The first and the last lines of the log of a process that runs until it is told to end."""

import asyncio
import json
import logging
import os
import platform
import signal
from collections.abc import Iterable

import click

from poseidon_py import __version__
from poseidon_py.config.document import changes_of
from poseidon_py.config.settings import Settings

log = logging.getLogger(__name__)


class ProcessLog:
    """`started`; `end_on` signals, `stop_requested`; `failed`; `ended`."""

    def __init__(self, name: str, settings: Settings, defaults: Settings | None = None) -> None:
        """`defaults`: what the settings are compared with; None: those of `poseidon run`."""
        self._name = name
        self._settings = settings
        self._defaults = defaults
        self._signal = ""
        self.stop_requested = asyncio.Event()

    def started(self) -> None:
        """The version, and the configuration where it differs from the defaults."""
        log.info("%s %s starts on Python %s, pid %d", self._name, __version__, platform.python_version(), os.getpid())
        changes = changes_of(self._settings, self._defaults)
        if changes:
            log.info("configuration beside the defaults: %s", json.dumps(changes, ensure_ascii=False))
        else:
            log.info("configuration: the defaults")

    def end_on(self, signals: Iterable[signal.Signals]) -> None:
        """A signal sets `stop_requested`."""
        loop = asyncio.get_running_loop()
        for number in signals:
            loop.add_signal_handler(number, self._received, number)

    def _received(self, number: signal.Signals) -> None:
        log.info("%s was received: ending", number.name)
        self._signal = number.name
        self.stop_requested.set()

    def failed(self, error: object) -> None:
        """The last line of a process that ends by itself: for people, or one that log collectors can read."""
        if self._settings.log_format == "json":
            log.error("%s ends because of an error: %s", self._name, error)
        else:
            click.echo(f"error: {error}", err=True)

    def ended(self) -> None:
        """The last line of any other."""
        log.info("%s has ended, because %s was received", self._name, self._signal)
