"""The HTTP client of the API server.

Two transports behind one interface: lists and watches stream through aiohttp, short requests use short_requests.Pool.
Errors are typed by what the caller can do about them:

    KubeError
      UnreachableError      the server was not reached: nothing was done
      LostAnswerError       the answer was lost: read the object to find out what was done
        QuietError          a watch was silent for a while: start it again
        TooLargeError       the answer exceeds the limit
      MalformedAnswerError  the server succeeded; its answer cannot be decoded
      ApiError              the server answered with an error
        NotFoundError, ConflictError, GoneError (410), BusyError (429 or 5xx: retry later)
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import aiohttp
import msgspec

from poseidon_py.kube.credentials import Access, CredentialsError
from poseidon_py.kube.objects import Pod, Status
from poseidon_py.kube.requests import short_requests
from poseidon_py.kube.requests.metadata_streams import MetadataStreams
from poseidon_py.kube.requests.rate_limit import RateLimit
from poseidon_py.kube.requests.retry_after import retry_after
from poseidon_py.util.decoding import MalformedError, decode_json
from poseidon_py.util.tasks import end_tasks

log = logging.getLogger(__name__)

_AGENT = "poseidon"
_TOKEN_SECONDS = 30.0
_READ_TIMEOUT = 60.0
_CONNECT_TIMEOUT = 10.0
_PAGE_TIMEOUT = 600.0
_UNLIMITED = aiohttp.ClientTimeout(total=None)
"""asyncio limits the total: of aiohttp's own limit a cancellation in the same turn comes out as a TimeoutError."""

MAX_PAGE = 256 << 20
"""Bytes of one page of a list, or of one answer of a source of usage."""
_MAX_ERROR = 64 << 10
"""Bytes of an error's body that are read; the message of a Status is in the first of them."""

LEASES = "/apis/coordination.k8s.io/"
"""How the paths of leases begin: a limited rate must not cost the leadership."""

MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
JSON = "application/json"


T = TypeVar("T")
_encode = msgspec.json.Encoder().encode


class KubeError(Exception):
    """A request to the API server failed."""


class UnreachableError(KubeError):
    """The server was not reached, so nothing was done."""


class LostAnswerError(KubeError):
    """The request was sent and its answer lost: the server may or may not have done it."""


class QuietError(LostAnswerError):
    """A watch was silent for a while: nothing has changed, or the connection is dead."""


class TooLargeError(LostAnswerError):
    """The answer exceeds the limit."""


class MalformedAnswerError(KubeError):
    """The server answered with success, and a body that cannot be decoded."""


class ApiError(KubeError):
    """The server answered with an error."""

    def __init__(self, code: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(f"{code} {reason}: {message}" if reason else f"{code}: {message}")
        self.code = code
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        """Seconds to wait before the next attempt, as `retry_after` bounds them; None: the server did not say."""


class NotFoundError(ApiError):
    """404."""


class ConflictError(ApiError):
    """409: the object exists already, or has changed. Also 422 if another object has the name: a UID in a patch is an
    immutable field, where in an update or a deletion it is a precondition."""


class GoneError(ApiError):
    """410: that resource version is compacted; list again."""


class BusyError(ApiError):
    """429 or 5xx: the same request may succeed later."""


def api_error(code: int, body: bytes, header: str | bytes | None = None) -> ApiError:
    """The error of an answer, whatever its body. `header`: the value of its Retry-After."""
    try:
        status: Status = decode_json(body, Status, "status")
    except MalformedError:
        status = Status()
    if not (status.reason or status.message):
        status = Status(status.code, None, body[:200].decode(errors="replace").strip(), status.details)
    seconds = retry_after(header, status.details.retry_after if status.details else None)
    known = {404: NotFoundError, 409: ConflictError, 410: GoneError, 429: BusyError}
    kind: type[ApiError] = BusyError if code >= 500 else known.get(code, ApiError)
    if code == 422 and "metadata.uid: Invalid value: " in (status.message or ""):
        kind = ConflictError
    return kind(code, status.reason or "", status.message or "", seconds)


def decode_answer(body: bytes, kind: type[T], what: str) -> T:
    """The decoded body of an answer; `what` was requested. Raises MalformedAnswerError."""
    try:
        answer: T = decode_json(body, kind, what)
    except MalformedError as error:
        raise MalformedAnswerError(f"the answer is malformed: {error}") from error
    return answer


class _Version(msgspec.Struct):
    git: str = msgspec.field(default="", name="gitVersion")


class Kube:
    """A client of one API server. `start`, then use, then `close`."""

    def __init__(self, access: Access, concurrency: int = 100, limit: RateLimit | None = None) -> None:
        """`concurrency`: binds in flight. `limit`: holds for all requests but those of leases."""
        self._access = access
        self._limit = limit
        # three more than the binds in flight, so that reads and lease requests do not queue behind binds
        self._pool = short_requests.Pool(access.host, access.port, access.tls, concurrency + 3, access.tls_name)
        self._http: aiohttp.ClientSession | None = None
        self._head: tuple[object, bytes] = (None, b"")
        self._refresher: asyncio.Task[None] | None = None

    @property
    def url(self) -> str:
        return self._access.url

    async def start(self) -> None:
        """Prepare the transports; opens no connection yet. Must be called inside the event loop."""
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=self._access.tls or True, keepalive_timeout=90),
            cookie_jar=aiohttp.DummyCookieJar(),
            headers={"User-Agent": _AGENT, "Accept": JSON},
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=_READ_TIMEOUT),
            read_bufsize=1 << 20,
            proxy=self._access.proxy,
        )
        self._refresher = asyncio.create_task(self._refresh(), name="token refresh")

    async def close(self) -> None:
        """Close all connections; requests in flight fail."""
        if self._refresher is not None:
            await end_tasks(self._refresher)
        self._pool.close()
        if self._http is not None:
            await self._http.close()

    def _lines(self) -> bytes:
        """Those that all requests have, with the newest token, which another client of the same access may have got."""
        access = self._access
        if self._head[0] is not access.headers:
            lines = [f"Host: {access.host_header}", f"User-Agent: {_AGENT}", f"Accept: {JSON}"]
            lines += [f"{name}: {value}" for name, value in access.headers.items()]
            self._head = access.headers, ("\r\n".join(lines) + "\r\n").encode()
        return self._head[1]

    async def _refresh(self) -> None:
        while True:
            await asyncio.sleep(_TOKEN_SECONDS)
            await self._renew_token()

    async def _renew_token(self) -> None:
        try:
            await self._access.refresh()
        except CredentialsError as error:
            log.warning("%s", error)

    # -- short requests ---------------------------------------------------------------------------------------

    async def call(
        self,
        verb: str,
        path: str,
        body: bytes = b"",
        content_type: str = JSON,
        timeout: float = 30.0,
    ) -> bytes:
        """The body of a successful answer. Raises KubeError. `timeout`: seconds from the moment in which the rate limit
        lets the request pass."""
        if self._limit is not None and not path.startswith(LEASES):
            await self._limit.wait()
        sent = self._access.headers
        answer = await self._send(verb, path, body, content_type, timeout)
        if answer.status == 401:
            await self._renew_token()
            if self._access.headers != sent:
                answer = await self._send(verb, path, body, content_type, timeout)
        if answer.status >= 300:
            raise api_error(answer.status, answer.body, answer.header(b"retry-after"))
        return answer.body

    async def _send(
        self, verb: str, path: str, body: bytes, content_type: str, timeout: float
    ) -> short_requests.Answer:
        if self._access.proxy:
            return await self._send_by_proxy(verb, path, body, content_type, timeout)
        length = f"Content-Type: {content_type}\r\nContent-Length: {len(body)}\r\n" if body else ""
        request = f"{verb} {self._access.prefix}{path} HTTP/1.1\r\n{length}".encode() + self._lines() + b"\r\n" + body
        try:
            return await self._pool.request(request, timeout)
        except short_requests.NotSentError as error:
            raise UnreachableError(f"cannot reach the API server at {self.url}: {error}") from error
        except short_requests.LostAnswerError as error:
            raise LostAnswerError(str(error)) from error

    async def _send_by_proxy(
        self, verb: str, path: str, body: bytes, content_type: str, timeout: float
    ) -> short_requests.Answer:
        headers, name = self._access.headers | ({"Content-Type": content_type} if body else {}), self._access.tls_name
        try:
            sent = self._session.request(
                verb, self.url + path, data=body or None, headers=headers, timeout=_UNLIMITED, server_hostname=name
            )
            async with asyncio.timeout(timeout), sent as answer:
                return short_requests.Answer(
                    answer.status, dict(answer.raw_headers), await _read(answer, short_requests.MAX_ANSWER)
                )
        except aiohttp.ClientConnectorError as error:
            raise UnreachableError(f"cannot reach the API server at {self.url}: {error}") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise LostAnswerError(str(error) or "no answer in time") from error

    async def bind(self, namespace: str, name: str, uid: str, node: str, timeout: float) -> None:
        """Bind the pod with that UID to a node. The body of the answer is ignored."""
        body = _encode(
            {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": namespace, "uid": uid},
                "target": {"apiVersion": "v1", "kind": "Node", "name": node},
            }
        )
        await self.call("POST", f"{pod_path(namespace, name)}/binding", body, timeout=timeout)

    async def pod(self, namespace: str, name: str) -> Pod:
        """The pod as it is now."""
        return decode_answer(await self.call("GET", pod_path(namespace, name)), Pod, f"pod {namespace}/{name}")

    async def patch_pod_status(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        """Apply a strategic merge patch to a pod's status. Its metadata.uid and .resourceVersion are preconditions."""
        await self.call("PATCH", f"{pod_path(namespace, name)}/status", _encode(patch), STRATEGIC_PATCH)

    async def create(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes:
        return await self.call("POST", path, _encode(body), timeout=timeout)

    async def update(self, path: str, body: Mapping[str, Any], timeout: float = 30.0) -> bytes:
        return await self.call("PUT", path, _encode(body), timeout=timeout)

    async def merge(self, path: str, patch: Mapping[str, Any]) -> bytes:
        return await self.call("PATCH", path, _encode(patch), MERGE_PATCH)

    async def evict_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete a pod if its disruption budgets allow that. Raises BusyError (429) if they do not."""
        body = {
            "apiVersion": "policy/v1",
            "kind": "Eviction",
            "metadata": {"name": name, "namespace": namespace},
            "deleteOptions": {"preconditions": {"uid": uid}},
        }
        await self.create(f"{pod_path(namespace, name)}/eviction", body)

    async def delete_pod(self, namespace: str, name: str, uid: str) -> None:
        """Delete the pod with that UID, with its own grace period and whatever its disruption budgets say."""
        body = {"apiVersion": "v1", "kind": "DeleteOptions", "preconditions": {"uid": uid}}
        await self.call("DELETE", pod_path(namespace, name), _encode(body))

    async def nominate_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node: str,
        annotations: Mapping[str, str | None] | None = None,
        conditions: Sequence[Mapping[str, Any]] = (),
    ) -> str:
        """Set status.nominatedNodeName of the pod with that UID, empty `node`: remove it; with it annotations, None:
        remove them, and conditions. Its resource version then."""
        patch: dict[str, Any] = {"metadata": {"uid": uid}, "status": {"nominatedNodeName": node or None}}
        if annotations:
            patch["metadata"]["annotations"] = annotations
        if conditions:
            patch["status"]["conditions"] = conditions
        body = await self.call("PATCH", f"{pod_path(namespace, name)}/status", _encode(patch), STRATEGIC_PATCH)
        return decode_answer(body, Pod, f"pod {namespace}/{name}").metadata.resource_version

    async def server_version(self) -> str:
        """The version of the server. Raises KubeError if it is unreachable or rejects our credentials."""
        return decode_answer(await self.call("GET", "/version", timeout=_CONNECT_TIMEOUT), _Version, "/version").git

    # -- streams ----------------------------------------------------------------------------------------------

    @property
    def _session(self) -> aiohttp.ClientSession:
        assert self._http is not None, "start() comes first"
        return self._http

    @property
    def metadata(self) -> MetadataStreams:
        """Lists and watches in which objects have nothing but their metadata."""
        return MetadataStreams(self)

    async def page(self, path: str, parameters: Mapping[str, str], accept: str = JSON) -> bytes:
        """One page of a list. Raises KubeError; TooLargeError beyond MAX_PAGE bytes."""
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=_READ_TIMEOUT)
        async with self._get(path, parameters, limits, accept, _PAGE_TIMEOUT) as answer:
            return await _read(answer, MAX_PAGE)

    async def watch(
        self, path: str, parameters: Mapping[str, str], silence: float, accept: str = JSON
    ) -> AsyncIterator[bytes]:
        """The stream of a watch, in pieces cut anywhere, until the server ends it.

        Raises KubeError; QuietError after `silence` seconds without a byte.
        """
        limits = aiohttp.ClientTimeout(total=None, sock_connect=_CONNECT_TIMEOUT, sock_read=silence)
        async with self._get(path, {**parameters, "watch": "true"}, limits, accept) as answer:
            try:
                while piece := await answer.content.readany():
                    yield piece
            except TimeoutError as error:
                raise QuietError(f"nothing came for {silence:g} s") from error

    @contextlib.asynccontextmanager
    async def _get(
        self,
        path: str,
        parameters: Mapping[str, str],
        limits: aiohttp.ClientTimeout,
        accept: str,
        total: float | None = None,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        if self._limit is not None:
            await self._limit.wait()
        url = f"{self.url}{path}?{urlencode(parameters)}"
        headers = {**self._access.headers, "Accept": accept}
        try:
            sent = self._session.get(url, headers=headers, timeout=limits, server_hostname=self._access.tls_name)
            async with asyncio.timeout(total), sent as answer:
                if answer.status == 401:
                    await self._renew_token()  # for the next attempt
                if answer.status != 200:
                    body = await _read(answer, _MAX_ERROR, whole=False)
                    raise api_error(answer.status, body, answer.headers.get("Retry-After"))
                yield answer
        except aiohttp.ClientConnectorError as error:
            raise UnreachableError(f"cannot reach the API server at {self.url}: {error.os_error}") from error
        except aiohttp.ClientPayloadError as error:  # its message is about encodings
            raise LostAnswerError("the server closed the connection") from error
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise LostAnswerError(str(error) or type(error).__name__) from error


async def _read(answer: aiohttp.ClientResponse, limit: int, *, whole: bool = True) -> bytes:
    """The body of an answer; unless `whole`, its first `limit` bytes. Raises TooLargeError."""
    body = bytearray()
    while piece := await answer.content.readany():
        body += piece
        if len(body) > limit:
            if whole:
                raise TooLargeError(f"the server's answer has more than {limit} bytes")
            break
    return bytes(body if whole else body[:limit])


def pod_path(namespace: str, name: str) -> str:
    return f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(name, safe='')}"
