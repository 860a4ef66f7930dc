"""Calls of a flow service over gRPC; with TLS, of certificates that may be renewed at any time."""

import asyncio
import logging
from collections.abc import AsyncIterator
from typing import Any, cast

import grpc
from google.protobuf.message import Message

from poseidon_py.feed.transport.transport import CallError, Reply, Tls
from protos import frames
from protos.gen import flow_pb2
from protos.pem_files import PemFileError

log = logging.getLogger(__name__)

_OPTIONS = (
    ("grpc.max_receive_message_length", frames.MAX_BYTES),
    ("grpc.max_send_message_length", frames.MAX_BYTES),
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.min_reconnect_backoff_ms", 5000),  # despite its name, the maximum duration of an attempt, with its handshake
    ("grpc.max_reconnect_backoff_ms", 2000),
    ("grpc.keepalive_time_ms", 30000),
    ("grpc.enable_http_proxy", 0),  # proxies are for traffic that leaves the cluster
    ("grpc.client_idle_timeout_ms", (1 << 31) - 1),  # never: a socket's file may be removed while in use
)
_SERVICE = flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"].full_name
_CLOSED = "the channel was closed during the call"


class GrpcTransport:
    """A channel, and former ones whose calls come to an end."""

    def __init__(self, address: str, tls: Tls | None, grace_seconds: float) -> None:
        """`grace_seconds`: how long calls may go on after a renewal. Raises OSError if a certificate cannot be
        read."""
        self._address = address
        self._tls = tls
        self._grace_seconds = grace_seconds
        self._seen: tuple[object, ...] = ()
        """The state of the files that are in use, and of those of which the log says that they cannot be."""
        self._refused: tuple[object, ...] = ()
        self._former: dict[asyncio.Task[None], grpc.aio.Channel] = {}
        """Channels whose calls come to an end, by the task that waits for these."""
        self._channel = self._open()

    def _open(self) -> grpc.aio.Channel:
        """Raises OSError."""
        if self._tls is None:
            return grpc.aio.insecure_channel(self._address, options=_OPTIONS)
        self._seen = self._tls.state()
        return grpc.aio.secure_channel(self._address, _credentials(self._tls), options=_OPTIONS)

    async def call(
        self, method: str, argument: Message | AsyncIterator[Message], reply: type[Reply], timeout: float
    ) -> Reply:
        self._renew()
        kind: Any = self._channel.unary_unary if isinstance(argument, Message) else self._channel.stream_unary
        ask = kind(f"/{_SERVICE}/{method}", request_serializer=_serialized, response_deserializer=reply.FromString)
        try:
            return cast(Reply, await ask(argument, timeout=timeout))
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code().name, error.details() or "") from error
        except (grpc.aio.UsageError, grpc.aio.InternalError) as error:  # the channel was closed during the call
            raise CallError("CLOSED", str(error)) from error
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # the task is not being cancelled: closing the channel cancels its calls in flight
            raise CallError("CLOSED", _CLOSED) from error

    def _renew(self) -> None:
        """Connects anew if the certificates were renewed. Calls in flight end on the former connection."""
        tls, former = self._tls, self._channel
        if tls is None or (found := tls.state()) in (self._seen, self._refused):
            return
        try:
            tls.check()
            if tls.state() != found:
                return  # they are being written: the next call finds them whole
            self._channel = self._open()
        except (PemFileError, OSError) as error:
            self._refused = found
            log.warning("the connection to the flow service keeps the former certificates: %s", error)
            return
        log.info("the certificates for the flow service were renewed: it is connected anew")
        task = asyncio.create_task(former.close(self._grace_seconds), name="former connection")
        self._former[task] = former
        task.add_done_callback(self._former.pop)

    async def close(self) -> None:
        for task, former in list(self._former.items()):
            await former.close()
            await task
        await self._channel.close()


def _serialized(message: Message) -> bytes:
    return message.SerializeToString()


def _credentials(tls: Tls) -> grpc.ChannelCredentials:
    """Raises OSError if a file cannot be read."""
    return grpc.ssl_channel_credentials(
        tls.authority.read_bytes(),
        tls.key.read_bytes() if tls.key else None,
        tls.certificate.read_bytes() if tls.certificate else None,
    )
