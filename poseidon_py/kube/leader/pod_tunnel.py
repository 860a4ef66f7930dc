"""A connection to a port of a pod through the API server: the subresource portforward.

It ends in the pod's own network, so that a server there sees a peer on loopback, as with `kubectl port-forward`. The
API server judges by the user's own credentials, of whatever kind, whether they may. Its other way to a pod, the
subresource proxy, ends at the pod's address instead, where network policies hold, and is anonymous there: the API
server removes the header Authorization from what it passes on, and presents no certificate.

The protocol is that of channels in a WebSocket, which kubelets speak besides that of kubectl: channel 0 has the data, 1
what is wrong with the port, and the first message of each is the number of the port.
"""

import io
from typing import Any
from urllib.parse import quote

from poseidon_py.kube.client import api_error
from poseidon_py.kube.credentials import Access, package_configuration

_PROTOCOL = "v4.channel.k8s.io"
_DATA, _ERRORS = 0, 1


class TunnelError(OSError):
    """There is no connection, or it has broken. `code`: that of the API server's answer; 0: there was none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class PodTunnel:
    """One connection, with the methods of a socket that http.client uses: like a socket it is open until it and all its
    files are closed."""

    def __init__(self, access: Access, namespace: str, pod: str, port: int, timeout: float) -> None:
        """`access`: of a kubeconfig. `timeout`: seconds for each step of the opening, and each message. Raises
        TunnelError."""
        self._open = 1
        self._announced: set[int] = set()
        path = f"/api/v1/namespaces/{quote(namespace, safe='')}/pods/{quote(pod, safe='')}/portforward?ports={port}"
        self._socket = _opened(access, path, timeout)

    def sendall(self, data: bytes) -> None:
        """Raises OSError."""
        from websocket import WebSocketException

        try:
            self._socket.send_binary(bytes((_DATA,)) + bytes(data))
        except WebSocketException as error:
            raise TunnelError(str(error) or type(error).__name__) from error

    def makefile(self, mode: str = "rb", *_: Any) -> io.BufferedReader:
        """What the far end sends."""
        self._open += 1
        return io.BufferedReader(_Received(self))

    def received(self) -> bytes:
        """The data of the next message that has some; empty: the far end has closed the connection. Raises OSError:
        TunnelError with the words of the far end if it cannot serve the port, TimeoutError."""
        from websocket import ABNF, WebSocketConnectionClosedException, WebSocketException, WebSocketTimeoutException

        while True:
            try:
                opcode, message = self._socket.recv_data()
            except WebSocketConnectionClosedException:
                return b""
            except WebSocketTimeoutException as error:
                raise TimeoutError("no answer in time") from error
            except WebSocketException as error:
                raise TunnelError(str(error) or type(error).__name__) from error
            if opcode == ABNF.OPCODE_CLOSE:
                return b""
            if not message:
                continue
            channel, data = message[0], bytes(message[1:])
            if channel not in self._announced:
                self._announced.add(channel)  # the number of the port
            elif channel == _ERRORS:
                raise TunnelError(" ".join(data.decode(errors="replace").split()))
            elif channel == _DATA and data:
                return data

    def close(self) -> None:
        """Without waiting for the far end."""
        self._open -= 1
        if not self._open:
            self._socket.shutdown()


class _Received(io.RawIOBase):
    """What comes out of a tunnel."""

    def __init__(self, tunnel: PodTunnel) -> None:
        super().__init__()
        self._tunnel = tunnel
        self._waiting = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._waiting:
            self._waiting = self._tunnel.received()
        count = min(len(buffer), len(self._waiting))
        buffer[:count] = self._waiting[:count]
        self._waiting = self._waiting[count:]
        return count

    def close(self) -> None:
        if not self.closed:
            self._tunnel.close()
        super().close()


def _opened(access: Access, path: str, timeout: float) -> Any:
    """A WebSocket, with the certificates and the proxy of a kubeconfig. Raises TunnelError."""
    import websocket
    from kubernetes.stream import ws_client

    headers = {name.lower(): value for name, value in access.headers.items()} | {"sec-websocket-protocol": _PROTOCOL}
    before = websocket.getdefaulttimeout()
    websocket.setdefaulttimeout(timeout)  # that it has no parameter for
    try:
        url = ws_client.get_websocket_url(access.url + path)  # type: ignore[no-untyped-call]
        return ws_client.create_websocket(package_configuration(access), url, headers)  # type: ignore[no-untyped-call]
    except websocket.WebSocketBadStatusException as error:
        body = error.resp_body or b""
        answer = api_error(error.status_code, body if isinstance(body, bytes) else str(body).encode())
        raise TunnelError(str(answer), answer.code) from error
    except (websocket.WebSocketException, OSError) as error:
        raise TunnelError(str(error) or type(error).__name__) from error
    finally:
        websocket.setdefaulttimeout(before)
