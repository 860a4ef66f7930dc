"""The subresource portforward of pods: a port of a pod as channels in a WebSocket, as kubelets serve it.

Pods run nothing here. An annotation says which ports of this machine stand for those of a pod:

    cluster.poseidon.io/ports: "10271=43210,8080"

Channel 2 * i has the data of the i-th port that is asked for, and 2 * i + 1 its errors; the first message of each is
the number of the port, 16 bits, little endian.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import WSMsgType, web

from benchmarks.cluster.http.bodies import Query
from benchmarks.cluster.store.errors import bad_request

Json = dict[str, Any]

PROTOCOL = "v4.channel.k8s.io"
ANNOTATION = "cluster.poseidon.io/ports"
_PIECE = 1 << 16


async def forward_ports(request: web.BaseRequest, pod: Json, query: Query) -> web.StreamResponse:
    """Serves the request until either side closes. Raises ApiError 400."""
    metadata = pod["metadata"]
    if not (pod.get("spec") or {}).get("nodeName"):
        raise bad_request(f"pod {metadata['name']} does not have a host assigned")
    asked = [part for part in query.get("ports", "").split(",") if part]
    if not asked or not all(part.isdecimal() and 0 < int(part) < 65536 for part in asked):
        raise bad_request('query parameter "ports" has to be a list of port numbers')
    if request.headers.get("Upgrade", "").lower() != "websocket":
        raise bad_request(f"this server forwards ports by WebSockets alone, with the protocol {PROTOCOL}")
    ports = [int(part) for part in asked]
    served = _served(metadata)
    socket = web.WebSocketResponse(protocols=(PROTOCOL,))
    await socket.prepare(request)
    writers: dict[int, asyncio.StreamWriter] = {}
    copying: list[asyncio.Task[None]] = []
    for at, port in enumerate(ports):
        for channel in (2 * at, 2 * at + 1):
            await socket.send_bytes(bytes((channel,)) + port.to_bytes(2, "little"))
        try:
            reader, writers[2 * at] = await asyncio.open_connection("127.0.0.1", served.get(port, 0))
        except OSError as error:
            why = error.strerror if port in served else "connection refused"
            text = f"error forwarding port {port} to pod {metadata['name']}, uid : failed to connect: {why}"
            await socket.send_bytes(bytes((2 * at + 1,)) + text.encode())
            await socket.close()
            break
        copying.append(asyncio.create_task(_copy(reader, socket, 2 * at)))
    try:
        async for message in socket:
            if message.type is WSMsgType.BINARY and message.data and message.data[0] in writers:
                writer = writers[message.data[0]]
                writer.write(message.data[1:])
                await writer.drain()
    finally:
        for writer in writers.values():
            writer.close()
        for task in copying:
            task.cancel()
        await asyncio.gather(*copying, return_exceptions=True)
    return socket


async def _copy(reader: asyncio.StreamReader, socket: web.WebSocketResponse, channel: int) -> None:
    """Until the far end closes, which closes the connection."""
    while piece := await reader.read(_PIECE):
        await socket.send_bytes(bytes((channel,)) + piece)
    await socket.close()


def _served(metadata: Json) -> dict[int, int]:
    """Port of the pod -> port of this machine."""
    found = {}
    for part in (metadata.get("annotations") or {}).get(ANNOTATION, "").split(","):
        port, _, here = part.strip().partition("=")
        if port.isdecimal() and (here or port).isdecimal():
            found[int(port)] = int(here or port)
    return found
