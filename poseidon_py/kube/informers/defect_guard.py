"""Keeps a defect that one object triggers from hiding the others of its resource."""

import asyncio
import logging
from collections.abc import Callable
from typing import Any

from poseidon_py.kube.informers.informer import ClearedHandler
from poseidon_py.kube.objects import Metadata

log = logging.getLogger(__name__)


class DefectGuard:
    """Passes reports to a handler. `failed` is set when the handler has raised something: the object is left out until
    all are listed again."""

    def __init__(self, label: str, handler: ClearedHandler) -> None:
        self._label = label
        self._handler = handler
        self._failures = 0
        """Since the last list."""
        self.failed = asyncio.Event()

    def observe(self, item: Any) -> None:
        self._pass(self._handler.observe, item, item.metadata)

    def removed(self, item: Any) -> None:
        self._pass(self._handler.removed, item, item.metadata)

    def invalid(self, metadata: Metadata, problem: str) -> None:
        self._pass(lambda _: self._handler.invalid(metadata, problem), metadata, metadata)

    def listed(self, uids: set[str]) -> None:
        failures, self._failures = self._failures, 0
        if failures > 1:
            log.warning("%d objects of %s are left out because of defects", failures, self._label)
        self._pass(self._handler.listed, uids, None)

    def clear(self) -> None:
        """The resource is not read any more."""
        try:
            self._handler.clear()
        except Exception:
            log.exception("objects of %s are not forgotten: a defect", self._label)

    def _pass(self, report: Callable[[Any], None], what: Any, about: Metadata | None) -> None:
        try:
            report(what)
        except Exception:
            name = f"{about.namespace}/{about.name}".lstrip("/") if about is not None else "the whole list"
            if not self._failures:  # one traceback tells enough
                log.exception("%s of %s is left out: a defect; listing all again soon", name, self._label)
            self._failures += 1
            self.failed.set()
