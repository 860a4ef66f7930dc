"""Who may read what: tokens and permissions as the API server judges them (TokenReview, SubjectAccessReview).

A request carries the bearer token of a user or a service account; what it may do is a rule for a path:

    rules: [{nonResourceURLs: [/metrics], verbs: [get]}]

Answers are remembered for ten seconds, as in other components. Nothing is permitted while the API server cannot be
asked.
"""

import asyncio
import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from poseidon_py.kube.client import KubeError, decode_answer

TOKENS = "/apis/authentication.k8s.io/v1/tokenreviews"
PERMISSIONS = "/apis/authorization.k8s.io/v1/subjectaccessreviews"
_SECONDS = 10.0
_REMEMBERED = 1024
_AT_ONCE = 4
"""Reviews in flight: requests with made-up tokens must not take the connections of binds."""
_LONGEST_TOKEN = 16 << 10


class ReviewApi(Protocol):
    """The part of kube.client.Kube that reviews use."""

    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes: ...


class User(Struct, frozen=True):
    """UserInfo."""

    username: str = ""
    uid: str = ""
    groups: list[str] = []
    extra: dict[str, list[str]] = {}


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
    """The request is refused. code: 401, 403, or 503 if the API server cannot be asked."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


class AccessReviewer:
    """`permit` raises Refused."""

    def __init__(self, api: ReviewApi, *, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._api = api
        self._monotonic = monotonic
        self._users: dict[bytes, tuple[float, User | None]] = {}
        self._permissions: dict[tuple[str, str, str], tuple[float, bool]] = {}
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def permit(self, authorization: str, verb: str, path: str) -> User:
        """The user of a request, by its header Authorization. `verb`: the method in lower case. Raises Refused."""
        kind, _, token = authorization.partition(" ")
        token = token.strip()
        if kind.lower() != "bearer" or not token or len(token) > _LONGEST_TOKEN:
            raise Refused(401, "send the token of a user or a service account: Authorization: Bearer TOKEN")
        try:
            user = await self._user(token)
            if user is None:
                raise Refused(401, "the API server does not know the token")
            allowed = await self._allowed(user, verb, path)
        except KubeError as error:
            raise Refused(503, f"the API server cannot be asked who may do this: {error}") from error
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
        async with self._slots:
            answer = await self._api.create(TOKENS, review)
        status = decode_answer(answer, _TokenReview, "token review").status
        user = status.user if status.authenticated else None
        _remember(self._users, key, (now + _SECONDS, user))
        return user

    async def _allowed(self, user: User, verb: str, path: str) -> bool:
        key, now = (f"{user.uid} {user.username}", verb, path), self._monotonic()
        if key in self._permissions and self._permissions[key][0] > now:
            return self._permissions[key][1]
        subject = {"user": user.username, "uid": user.uid, "groups": user.groups, "extra": user.extra}
        spec = {**subject, "nonResourceAttributes": {"path": path, "verb": verb}}
        review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
        async with self._slots:
            answer = await self._api.create(PERMISSIONS, review)
        allowed = decode_answer(answer, _AccessReview, "subject access review").status.allowed
        _remember(self._permissions, key, (now + _SECONDS, allowed))
        return allowed


def _remember(known: dict[Any, Any], key: Any, value: Any) -> None:
    if len(known) >= _REMEMBERED:
        known.clear()
    known[key] = value
