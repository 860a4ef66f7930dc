"""What an asker may see: all, or the namespaces in which the API server lets it list pods. Others count as sums, and
their names are taken out of texts.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from aiohttp import web

from poseidon_py.app.serving.access_review import ASKER, Asker, Refused
from poseidon_py.util.tasks import end_tasks

_AT_ONCE = 8
"""Reviews that wait for the API server; the reviewer refuses more than 32 of all askers."""
_PATIENCE = 0.2
"""Seconds for which an answer waits for reviews. Those that are not there by then count as hidden, and `reviewing` says
how many; the next answer has them."""
_REVIEWED = 1000
"""Namespaces that are reviewed for one asker; those beyond can be named in the request."""
_NAME = re.compile(r"(?<![\w./-])([a-z0-9]([-a-z0-9]*[a-z0-9])?)/[a-z0-9][-a-z0-9.]*")
HIDDEN = "(in another namespace)"


class Scope:
    """`shows` a namespace or not. Of one asker, at one time."""

    def __init__(self, visible: frozenset[str] | None, known: Iterable[str] = (), reviewing: int = 0) -> None:
        """`visible`: None: all. `known`: all namespaces that there are. `reviewing`: how many are not decided yet."""
        self._visible = visible
        self._known = frozenset(known)
        self.reviewing = reviewing

    @property
    def all(self) -> bool:
        return self._visible is None

    def shows(self, namespace: str) -> bool:
        return self._visible is None or namespace in self._visible

    def shows_object(self, full_name: str) -> bool:
        """`full_name`: NAMESPACE/NAME."""
        return self.shows(full_name.partition("/")[0])

    def texts(self, body: Any) -> Any:
        """JSON, in all texts of which names of objects in other namespaces are replaced."""
        if self._visible is None:
            return body
        if isinstance(body, str):
            return self.text(body)
        if isinstance(body, dict):
            return {key: self.texts(value) for key, value in body.items()}
        return [self.texts(each) for each in body] if isinstance(body, list) else body

    def text(self, text: str) -> str:
        """The text without names of objects in other namespaces."""
        if self._visible is None:
            return text

        def replaced(found: re.Match[str]) -> str:
            namespace = found[1]
            return found[0] if namespace not in self._known or self.shows(namespace) else HIDDEN

        return _NAME.sub(replaced, text)


ALL = Scope(None)


class Scopes:
    """`of` a request."""

    def __init__(self, namespaces: Callable[[], Awaitable[Iterable[str]]]) -> None:
        """`namespaces`: those that there are."""
        self._namespaces = namespaces
        self._reviews: dict[object, asyncio.Task[Refused | None]] = {}
        """By user."""

    async def of(self, request: web.Request, namespace: str = "") -> Scope:
        """`namespace`: the one that is asked for; empty: all. Raises Refused."""
        asker = request.get(ASKER)
        if asker is None or await asker.may_list_pods(""):
            return ALL
        known = sorted(await self._namespaces())
        if namespace:
            visible = frozenset({namespace}) if await asker.may_list_pods(namespace) else frozenset[str]()
            return Scope(visible, {*known, namespace})
        unknown = [each for each in known[:_REVIEWED] if asker.known_to_list_pods(each) is None]
        if unknown:
            await self._reviewed(asker, unknown)
        answers = {each: asker.known_to_list_pods(each) for each in known}
        visible = frozenset(each for each, allowed in answers.items() if allowed)
        return Scope(visible, known, sum(allowed is None for allowed in answers.values()))

    async def _reviewed(self, asker: Asker, namespaces: Iterable[str]) -> None:
        """Waits a while for reviews of these, which go on afterwards. Raises Refused."""
        key = asker.user.key
        reviews = self._reviews.get(key)
        if reviews is None:
            reviews = self._reviews[key] = asyncio.create_task(_review(asker, namespaces), name="namespace reviews")
            reviews.add_done_callback(lambda _: self._reviews.pop(key, None))
        await asyncio.wait({reviews}, timeout=_PATIENCE)
        if reviews.done() and (error := await reviews) is not None:
            raise error

    async def stop(self) -> None:
        """Ends reviews."""
        await end_tasks(*self._reviews.values())


async def _review(asker: Asker, namespaces: Iterable[str]) -> Refused | None:
    """Asks for each, until the API server does not answer."""
    left = iter(namespaces)

    async def worker() -> None:
        for namespace in left:
            await asker.may_list_pods(namespace)

    ended = await asyncio.gather(*(worker() for _ in range(_AT_ONCE)), return_exceptions=True)
    for error in ended:
        if isinstance(error, BaseException) and not isinstance(error, Refused):
            raise error
    return next((each for each in ended if isinstance(each, Refused)), None)
