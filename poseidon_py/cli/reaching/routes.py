"""Requests to a scheduler, and the ways to it: an address, or a port of its pod through the API server."""

import http.client
import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from poseidon_py.cli.errors import UsageProblem
from poseidon_py.kube.credentials import trusting

if TYPE_CHECKING:
    from poseidon_py.kube.credentials import Access

TIMEOUT_SECONDS = 30.0
REMEDY = "give --address HOST:PORT of its health port"


class AskError(Exception):
    """There is no answer, or another scheduler answers; the message gives the reason and the remedy.

    `status`: that of the HTTP answer; 0: there is none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Route(Protocol):
    """A way to a scheduler. `name`: where it leads, for messages; `headers`: of each request."""

    @property
    def name(self) -> str: ...
    @property
    def headers(self) -> Mapping[str, str]: ...
    def connect(self, timeout: float) -> http.client.HTTPConnection:
        """A connection, which need not be open yet. `timeout`: seconds. Raises AskError and OSError."""
        ...

    def failure(self, reason: str) -> str:
        """The message for a request that got no answer."""
        ...


class DirectRoute:
    """To an address: HOST:PORT or http://HOST:PORT of a health port, https://HOST:PORT of a secure port."""

    def __init__(self, address: str, token: str = "", authority: Path | None = None) -> None:
        """`token`, `authority`: for https alone; `authority` None: the authorities that this machine trusts. Raises
        UsageProblem."""
        try:
            parts = urlsplit(address if "://" in address else f"http://{address}")
            host, port = parts.hostname, parts.port
        except ValueError as error:
            raise UsageProblem(f"--address {address}: {error}; give HOST:PORT or https://HOST:PORT") from error
        if parts.scheme not in ("http", "https") or not host or parts.path.strip("/") or parts.query:
            raise UsageProblem(f"--address {address} is no address; give HOST:PORT or https://HOST:PORT")
        self.name = address
        self.secure = parts.scheme == "https"
        self.headers = {"Authorization": f"Bearer {token}"} if self.secure and token else {}
        self._host, self._port = host, port
        self._authority = authority

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        if not self.secure:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        try:
            context = trusting(self._authority)
        except OSError as error:
            raise AskError(f"--certificate-authority {self._authority}: {error.strerror or error}") from error
        return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=context)

    def failure(self, reason: str) -> str:
        if "CERTIFICATE_VERIFY_FAILED" in reason:
            return (
                f"the certificate of {self.name} is not trusted: {reason}; give --certificate-authority FILE, or "
                "`kubectl port-forward` to its health port"
            )
        return f"no scheduler at {self.name}: {reason}; {REMEDY}"


class PodRoute:
    """To a port of a pod, through the API server of a kubeconfig."""

    headers: Mapping[str, str] = {}

    def __init__(self, access: "Access", pod: str, port: int) -> None:
        """`pod`: NAMESPACE/NAME."""
        self._access = access
        self._namespace, _, self._pod = pod.partition("/")
        self._port = port
        self.name = f"pod {pod}, port {port}"

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        from poseidon_py.kube.leader.pod_tunnel import PodTunnel, TunnelError

        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=timeout)
        try:
            tunnel: Any = PodTunnel(self._access, self._namespace, self._pod, self._port, timeout)
        except TunnelError as error:
            raise AskError(
                self._refusal(error.code, str(error)), 0 if error.code in (0, 404) else error.code
            ) from error
        connection.sock = tunnel
        return connection

    def failure(self, reason: str) -> str:
        return f"no answer from {self.name}: {reason}; {self._by_hand}"

    def _refusal(self, code: int, reason: str) -> str:
        what = f"no connection to {self.name}, through the API server {self._access.url}: {reason}"
        if code == 403:
            return f"{what}; it takes get and create on pods/portforward in namespace {self._namespace} (docs/rbac.md)"
        if code == 404:
            return f"{what}; the leader has ended just now, or does not know its pod: docs/kubectl.md"
        return f"{what}; {self._by_hand}"

    @property
    def _by_hand(self) -> str:
        forward = f"kubectl port-forward -n {self._namespace} {self._pod} {self._port}"
        return f"try `{forward}`, and --address 127.0.0.1:{self._port}"


def ask(
    route: Route, path: str, *, method: str = "GET", body: bytes | None = None, timeout: float = TIMEOUT_SECONDS
) -> dict[str, Any]:
    """The JSON answer of a scheduler. `body`: JSON; `timeout`: seconds. Raises AskError."""
    headers = dict(route.headers) | ({"Content-Type": "application/json"} if method != "GET" else {})
    try:
        connection = route.connect(timeout)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            status, content = answer.status, answer.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException) as error:
        raise AskError(route.failure(str(error) or type(error).__name__)) from error
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError):
        found = None
    if status >= 300:
        problem = found.get("error") if isinstance(found, dict) else None
        reason = f"{status} {http.client.responses.get(status, '')}".strip()
        raise AskError(str(problem or f"{route.name} is not a scheduler: {reason}; {REMEDY}"), status)
    if not isinstance(found, dict):
        raise AskError(route.failure("the answer is not that of a scheduler"))
    return found
