"""Who may read what: tokens and permissions as the API server judges them (TokenReview, SubjectAccessReview).

A request carries the bearer token of a user or a service account; what it may do is a rule for a path:

    rules: [{nonResourceURLs: [/metrics], verbs: [get]}]

Answers are remembered for ten seconds, as in other components, and those about namespaces for a minute, since a list
may need one for each. Nothing is permitted while the API server cannot be asked.
"""

import asyncio
import hashlib
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from aiohttp import web
from msgspec import Struct

from poseidon_py.kube.client import Kube, KubeError, decode_answer
from poseidon_py.kube.credentials import Access
from poseidon_py.kube.requests.rate_limit import RateLimit

log = logging.getLogger(__name__)

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
PERMISSIONS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_SECONDS = 10.0
_NAMESPACE_SECONDS = 60.0
_REMEMBERED = 1024
_NAMESPACES_REMEMBERED = 16_384
_WAITING = 32
"""Requests that wait for a review: made-up tokens must not fill the memory."""
_QPS, _BURST, _CONNECTIONS = 50.0, 100, 2
"""Of reviews alone: made-up tokens must not take those of binds and of the lease."""
_REVIEW_SECONDS = 5.0
_LONGEST_TOKEN = 16 << 10


class ReviewApi(Protocol):
    """The part of kube.client.Kube that reviews use."""

    async def start(self) -> None: ...
    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...
    async def close(self) -> None: ...


def review_client(access: Access) -> Kube:
    """A client for reviews, with connections and a rate of its own. `start` it, and `close` it at the end."""
    return Kube(access, _CONNECTIONS, RateLimit(_QPS, _BURST))


class User(Struct, frozen=True):
    """UserInfo."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for users of whom the API server judges alike."""
        return self.username, self.uid, self.groups, tuple(sorted(self.extra.items()))


class _Authentication(Struct, frozen=True):
    authenticated: bool = False
    user: User = User()


class _TokenReview(Struct):
    status: _Authentication = _Authentication()


class _Authorization(Struct, frozen=True):
    allowed: bool = False


class _AccessReview(Struct):
    status: _Authorization = _Authorization()


class Refused(Exception):
    """The request is refused. code: of HTTP; 503 if the API server cannot be asked."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class AccessReviewer:
    """`permit` raises Refused."""

    def __init__(self, api: ReviewApi, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._monotonic = monotonic
        self._users: dict[bytes, tuple[float, User | None]] = {}
        self._permissions: dict[tuple[object, ...], tuple[float, bool]] = {}
        self._namespaces: dict[tuple[object, ...], tuple[float, bool]] = {}
        self._waiting = 0

    async def permit(self, authorization: str, verb: str, path: str) -> User:
        """The user of a request, by its header Authorization. `verb`: the method in lower case. Raises Refused."""
        kind, _, token = authorization.partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token or len(token) > _LONGEST_TOKEN or not token.isascii():
            raise Refused(401, "send the token of a user or a service account: Authorization: Bearer TOKEN")
        try:
            user = await self._user(token)
            if user is None:
                raise Refused(401, "the API server does not know the token")
            allowed = await self._may_reach(user, verb, path)
        except (KubeError, TimeoutError) as error:
            log.warning("the API server cannot be asked who may %s %s: %s", verb, path, error or "no answer in time")
            raise Refused(503, "the API server cannot be asked who may do this; see the scheduler's log") from error
        if not allowed:
            raise Refused(
                403, f"{user.username} may not {verb} the path {path}; a rule with nonResourceURLs permits it"
            )
        return user

    async def _user(self, token: str) -> User | None:
        """None: the token is not valid."""
        key, now = hashlib.sha256(token.encode()).digest(), self._monotonic()
        if key in self._users and self._users[key][0] > now:
            return self._users[key][1]
        review = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
        answer = await self._asked(TOKENS, review)
        status = decode_answer(answer, _TokenReview, "token review").status
        user = status.user if status.authenticated else None
        _remember(self._users, key, (now + _SECONDS, user))
        return user

    async def _may_reach(self, user: User, verb: str, path: str) -> bool:
        key, now = (*user.key, verb, path), self._monotonic()
        if key in self._permissions and self._permissions[key][0] > now:
            return self._permissions[key][1]
        allowed = await self._allowed(user, {"nonResourceAttributes": {"path": path, "verb": verb}})
        _remember(self._permissions, key, (now + _SECONDS, allowed))
        return allowed

    def known_to_list_pods(self, user: User, namespace: str) -> bool | None:
        """What is remembered of `may_list_pods`; None: nothing."""
        until, allowed = self._namespaces.get((*user.key, namespace), (0.0, False))
        return allowed if until > self._monotonic() else None

    async def may_list_pods(self, user: User, namespace: str) -> bool:
        """Whether the user may list the pods of a namespace, or, if it is empty, of all. Raises Refused."""
        known = self.known_to_list_pods(user, namespace)
        if known is not None:
            return known
        attributes = {"verb": "list", "version": "v1", "resource": "pods"}
        if namespace:
            attributes["namespace"] = namespace
        try:
            allowed = await self._allowed(user, {"resourceAttributes": attributes})
        except (KubeError, TimeoutError) as error:
            where = f"in namespace {namespace}" if namespace else "in all namespaces"
            log.warning("the API server cannot be asked who may list pods %s: %s", where, error or "no answer in time")
            raise Refused(503, "the API server cannot be asked whose pods may be shown; see the log") from error
        key = (*user.key, namespace)
        _remember(self._namespaces, key, (self._monotonic() + _NAMESPACE_SECONDS, allowed), _NAMESPACES_REMEMBERED)
        return allowed

    async def _allowed(self, user: User, attributes: Mapping[str, Any]) -> bool:
        subject = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        spec = {**subject, **attributes}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        answer = await self._asked(PERMISSIONS, review)
        return decode_answer(answer, _AccessReview, "subject access review").status.allowed

    async def _asked(self, path: str, review: Mapping[str, Any]) -> bytes:
        if self._waiting >= _WAITING:
            raise Refused(503, "too many requests wait for the API server's judgement; try again")
        self._waiting += 1
        try:
            async with asyncio.timeout(_REVIEW_SECONDS):
                return await self._api.create(path, review, timeout=_REVIEW_SECONDS)
        finally:
            self._waiting -= 1


class Asker(Struct, frozen=True):
    """Who has sent a request to the secure port."""

    user: User
    reviewer: AccessReviewer

    def known_to_list_pods(self, namespace: str) -> bool | None:
        """As of AccessReviewer."""
        return self.reviewer.known_to_list_pods(self.user, namespace)

    async def may_list_pods(self, namespace: str) -> bool:
        """Likewise. Raises Refused."""
        return await self.reviewer.may_list_pods(self.user, namespace)


ASKER: web.RequestKey[Asker | None] = web.RequestKey("asker", Asker)
"""Of a request; None: it comes from the own machine, or is for what everybody may have."""


def _remember(known: dict[Any, Any], key: Any, value: Any, limit: int = _REMEMBERED) -> None:
    if len(known) >= limit:
        known.clear()
    known[key] = value
