"""Where the ports listen, and which connections they keep."""

import asyncio
import contextlib
import errno
import re
import socket
import ssl

import pytest
import uvloop

from poseidon_py.app.serving import http_endpoints, port
from poseidon_py.app.serving.access_review import PERMISSIONS, TOKENS, AccessReviewer, Refused, review_client
from poseidon_py.app.serving.http_endpoints import HealthAddressError, Probes
from poseidon_py.app.serving.state_endpoints import Health
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube
from tests.poseidon_py.app.serving.answers import Answers

NOWHERE = credentials.at("http://127.0.0.1:9")
HEAD = b"GET /livez HTTP/1.1\r\nHost: a\r\n"
LOOPS = pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])


def run(loop, work):
    """Ports have to work with the event loop of Python and with the one that `poseidon run` uses."""
    with asyncio.Runner(loop_factory=loop) as runner:
        return runner.run(work)


@contextlib.asynccontextmanager
async def serving(**settings):
    probes = Probes(Answers(**settings))
    await probes.start()
    await probes.start_secure(NOWHERE)
    try:
        yield probes
    finally:
        await probes.stop()


async def livez(where, tls=None, address="127.0.0.2"):
    """The status line of /livez, asked from another address than the idle connections come from."""
    reader, writer = await asyncio.open_connection("127.0.0.1", where, ssl=tls, local_addr=(address, 0))
    writer.write(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    line = await reader.readline()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return line


def connected(where, count, address="127.0.0.1"):
    """Connections that say nothing."""
    opened = []
    for _ in range(count):
        each = socket.create_connection(("127.0.0.1", where), source_address=(address, 0))
        each.setblocking(False)
        opened.append(each)
    return opened


def is_open(connection):
    try:
        return connection.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


async def until(condition):
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def unverified():
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


@pytest.mark.slow
@pytest.mark.parametrize(
    ("loop", "secure"),
    [(asyncio.new_event_loop, False), (uvloop.new_event_loop, False), (uvloop.new_event_loop, True)],
    ids=["asyncio", "uvloop", "uvloop-secure"],
)
def test_a_probe_is_answered_beside_a_thousand_idle_connections(loop, secure):
    """On the secure port they do not even begin their handshake."""

    async def work():
        async with serving(secure_port=0) as probes:
            where = probes.secure_port if secure else probes.port
            opened = []
            for _ in range(10):
                opened += connected(where, 100)
                assert await livez(where, unverified() if secure else None) == b"HTTP/1.1 200 OK\r\n"
            await until(lambda: sum(map(is_open, opened)) <= port.LIMIT)
            assert sum(map(is_open, opened)) >= port.LIMIT - 1
            for each in opened:
                each.close()

    run(loop, work())


@LOOPS
def test_of_too_many_connections_the_longest_idle_one_of_the_busiest_address_gives_way(loop):
    async def work():
        async with serving() as probes:
            single = connected(probes.port, 1, "127.0.0.3")
            flood = connected(probes.port, port.LIMIT - 1)
            await until(lambda: len(probes._ports[0]._open) == port.LIMIT)
            last = connected(probes.port, 2, "127.0.0.4")
            await until(lambda: not is_open(flood[1]))
            assert [is_open(each) for each in single + last] == [True] * 3
            assert [is_open(each) for each in flood] == [False] * 2 + [True] * (port.LIMIT - 3)
            for each in single + flood + last:
                each.close()

    run(loop, work())


@LOOPS
def test_a_connection_that_is_answered_does_not_give_way(loop):
    async def work():
        asked, go_on = asyncio.Event(), asyncio.Event()

        class Slow(Answers):
            async def gangs(self, name, namespace):
                asked.set()
                await go_on.wait()
                return {}

        probes = Health(Slow())
        await probes.start()
        reader, writer = await asyncio.open_connection("127.0.0.1", probes.port)
        writer.write(b"GET /gangs HTTP/1.1\r\nHost: localhost\r\n\r\n")
        await asked.wait()
        flood = connected(probes.port, port.LIMIT)
        await until(lambda: not is_open(flood[0]))
        go_on.set()
        assert await reader.readline() == b"HTTP/1.1 200 OK\r\n"
        writer.close()
        for each in flood:
            each.close()
        await probes.stop()

    run(loop, work())


@LOOPS
@pytest.mark.parametrize(
    "sent", [b"", b"GET /livez HTTP/1.1\r\nHost: a\r\n", b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n"]
)
def test_connections_that_send_no_request_in_time_are_closed(loop, sent, monkeypatch):
    """From the start, in the middle of the head, and after an answer."""
    monkeypatch.setattr(http_endpoints, "_REQUEST_SECONDS", 0.05)

    async def work():
        async with serving() as probes:
            reader, writer = await asyncio.open_connection("127.0.0.1", probes.port)
            writer.write(sent)
            async with asyncio.timeout(10):
                answer = await reader.read()
            assert answer.startswith(b"HTTP/1.1 200") if sent.endswith(b"\r\n\r\n") else answer == b""
            writer.close()

    run(loop, work())


async def test_a_body_that_does_not_come_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(http_endpoints, "_REQUEST_SECONDS", 0.05)
    async with serving() as probes:
        reader, writer = await asyncio.open_connection("127.0.0.1", probes.port)
        writer.write(b"PUT /debug/flags/v HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n")
        assert b" 408 " in await reader.readline()
        writer.close()


@pytest.mark.slow
def test_a_client_that_does_not_read_its_answer_is_cut_off(monkeypatch):
    monkeypatch.setattr(port, "_STUCK_SECONDS", 0.05)

    async def work():
        async with serving() as probes:
            (client,) = connected(probes.port, 1)
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connections = probes._ports[0]._open
            await until(lambda: connections)
            async with asyncio.timeout(60):
                while connections:
                    with contextlib.suppress(BlockingIOError, ConnectionError):
                        client.send(b"GET /configz HTTP/1.1\r\nHost: localhost\r\n\r\n" * 10)
                    await asyncio.sleep(0.005)
            client.close()

    run(uvloop.new_event_loop, work())


async def test_a_handshake_that_does_not_end_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(port, "_HANDSHAKE_SECONDS", 0.05)
    async with serving(secure_port=0) as probes:
        (client,) = connected(probes.secure_port, 1)
        async with asyncio.timeout(10):
            await until(lambda: not is_open(client))
        client.close()


async def test_a_host_name_is_served_at_all_its_addresses_that_there_are(monkeypatch):
    loop = asyncio.get_running_loop()

    async def found(*_, **__):
        kind = (socket.SOCK_STREAM, 6, "")
        missing = (socket.AF_INET, *kind, ("192.0.2.1", 0))  # of documentation: of no machine
        return [missing, *((socket.AF_INET, *kind, (f"127.0.0.{n}", 0)) for n in (5, 6))]

    monkeypatch.setattr(loop, "getaddrinfo", found)
    async with serving(health_address="two.example") as probes:
        for address in ("127.0.0.5", "127.0.0.6"):
            _, writer = await asyncio.open_connection(address, probes.port)
            writer.close()


@pytest.mark.parametrize("name", ["health", "secure"])
@pytest.mark.parametrize(
    ("error", "says"),
    [
        (errno.EADDRINUSE, r"Address already in use; choose another --NAME-port, 0 for any free one, -1 for none"),
        (errno.EACCES, r"Permission denied; ports below 1024 need privileges: choose another --NAME-port, 0 for"),
        (
            errno.EADDRNOTAVAIL,
            r"Cannot assign requested address; give an IP address or a host name of this machine as --ADDRESS-address",
        ),
        (errno.EAFNOSUPPORT, r"not supported by protocol; choose another --NAME-port"),
    ],
)
async def test_an_address_that_cannot_be_bound_is_explained_in_terms_of_the_flags(monkeypatch, name, error, says):
    def refuse(*_, **__):
        raise OSError(error, "")

    monkeypatch.setattr(socket, "create_server", refuse)
    address = {"health": "health", "secure": "bind"}[name]
    ports = {"health_port": -1, f"{name}_port": 80, f"{address}_address": "::1"}
    says = says.replace("NAME", name).replace("ADDRESS", address)
    with pytest.raises(HealthAddressError, match=re.escape(f"cannot serve {name} on [::1]:80: ") + f".*{says}"):
        async with serving(**ports):
            pass


async def test_a_port_that_is_taken_is_not_shared():
    async with serving(secure_port=0) as probes:
        for name, taken in (("health", probes.secure_port), ("secure", probes.port)):
            with pytest.raises(HealthAddressError, match=f"already in use; choose another --{name}-port"):
                async with serving(**{"health_port": -1, f"{name}_port": taken}):
                    pass


# -- reviews beside binds ---------------------------------------------------------------------------------------------


class ApiServer(asyncio.Protocol):
    """Answers binds, and never a review."""

    connections = 0
    waiting: list[bytes]

    @classmethod
    async def started(cls):
        cls.connections, cls.waiting = 0, []
        server = await asyncio.get_running_loop().create_server(cls, "127.0.0.1", 0)
        return server, credentials.at(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")

    def connection_made(self, transport):
        type(self).connections += 1
        self.transport = transport

    def data_received(self, data):
        if TOKENS.encode() in data or PERMISSIONS.encode() in data:
            self.waiting.append(data)
        else:
            self.transport.write(b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\n{}")


async def test_a_flood_of_tokens_takes_neither_connections_nor_requests_from_binds():
    """The API server answers no review, 500 requests with made-up tokens wait for one, and all binds are done at once:
    no clock moves here that the rate of either would need."""
    server, access = await ApiServer.started()
    reviews, binds = review_client(access), Kube(access, 1)
    await reviews.start()
    await binds.start()
    reviewer = AccessReviewer(reviews)
    flood = [asyncio.create_task(reviewer.permit(f"Bearer t{n}", "get", "/metrics")) for n in range(500)]
    await until(lambda: len(ApiServer.waiting) == 5)
    for n in range(20):
        await binds.bind("default", f"p{n}", "u", "node", 5.0)
    assert ApiServer.connections == 5 + 1
    assert sum(task.done() for task in flood) == 500 - 32
    for task in flood:
        if task.done():
            with pytest.raises(Refused, match="too many requests wait"):
                task.result()
    for task in flood:
        task.cancel()
    await asyncio.gather(*flood, return_exceptions=True)
    for client in (reviews, binds):
        await client.close()
    server.close()


async def test_reviews_have_a_rate_of_their_own():
    """50 a second after a hundred at once, by a clock that stands still."""
    slept = []

    async def sleep(seconds):
        slept.append(seconds)
        await asyncio.Event().wait()

    client = review_client(NOWHERE)
    limit = client._limit
    assert limit is not None
    limit._sleep, limit._monotonic, limit._filled_at = sleep, lambda: 0.0, 0.0
    tasks = [asyncio.create_task(limit.wait()) for _ in range(102)]
    await until(lambda: len(slept) == 2)
    assert sum(task.done() for task in tasks) == 100
    assert slept == [1 / 50, 2 / 50]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_token_of_the_scheduler_that_one_client_renews_is_sent_by_the_other():
    server, access = await ApiServer.started()
    client = Kube(access)
    await client.start()
    access.headers = {"Authorization": "Bearer new"}
    assert b"Authorization: Bearer new\r\n" in client._lines()
    await client.close()
    server.close()
