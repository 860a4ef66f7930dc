"""The small HTTP client: what it understands, and what it says may have happened when it goes wrong."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.short_requests import LostAnswerError, NotSentError, Pool, parse

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"
REQUEST = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"


@pytest.mark.parametrize(
    ("data", "status", "body"),
    [
        (OK, 201, b"ok"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 200, b"abcde"),
        (
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\nT: 1\r\nU: 2\r\n\r\n",
            200,
            b"0123456789",
        ),
        (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 201, b"ok"),
        (b"HTTP/1.1 429 Too Many Requests\r\nRETRY-AFTER:  7 \r\ncontent-length:0\r\n\r\n", 429, b""),
    ],
)
def test_an_answer_is_understood_however_it_is_cut(data, status, body):
    for cut in range(len(data)):
        assert parse(data[:cut])[0] is None
    answer, rest = parse(data + b"next")
    assert answer is not None
    assert (answer.status, answer.body, rest) == (status, body, b"next")
    if status == 429:
        assert answer.header(b"retry-after") == b"7"


@pytest.mark.parametrize("data", [b"SSH-2.0-x\r\n\r\n", b"GARBAGE", b"HTTP/1.1 200 OK\r\n\r\nwithout length"])
def test_what_is_not_http_is_refused(data):
    with pytest.raises(ValueError, match=r".+"):
        parse(data)


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5))
def test_chunks_add_up(parts):
    stream = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    answer, rest = parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + stream)
    assert answer is not None
    assert (answer.body, rest) == (b"".join(parts), b"")


class Peer:
    """A server on loopback that counts connections and answers by script: bytes, or None to close."""

    def __init__(self, *answers) -> None:
        self.answers = list(answers)
        self.connections = 0
        self.requests = 0
        self.hold: asyncio.Event | None = None

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self.server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_):
        self.server.close()

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            while True:
                await reader.readuntil(b"\r\n\r\n")
                self.requests += 1
                if self.hold is not None:
                    await self.hold.wait()
                answer = self.answers.pop(0) if self.answers else OK
                if answer is None:
                    break
                writer.write(answer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@pytest.fixture
async def pool_of():
    pools = []

    def make(peer, limit=4):
        pools.append(Pool("127.0.0.1", peer.port, None, limit))
        return pools[-1]

    yield make
    for pool in pools:
        pool.close()
    await asyncio.sleep(0)


async def test_a_connection_is_used_again(pool_of):
    async with Peer() as peer:
        pool = pool_of(peer)
        for _ in range(5):
            assert (await pool.request(REQUEST, 5)).status == 201
        assert (peer.connections, peer.requests) == (1, 5)


async def test_connections_are_bounded_and_everybody_gets_a_turn(pool_of):
    async with Peer() as peer:
        pool = pool_of(peer, limit=3)
        answers = await asyncio.gather(*(pool.request(REQUEST, 5) for _ in range(20)))
        assert {answer.status for answer in answers} == {201}
        assert peer.connections == 3


@pytest.mark.parametrize(
    "closing", [b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n", OK + b"junk"]
)
async def test_a_connection_that_ends_is_not_used_again(pool_of, closing):
    async with Peer(closing) as peer:
        pool = pool_of(peer)
        await pool.request(REQUEST, 5)
        await pool.request(REQUEST, 5)
        assert peer.connections == 2


async def test_nobody_there_means_that_nothing_was_sent(pool_of):
    async with Peer() as peer:
        pass
    with pytest.raises(NotSentError):
        await pool_of(peer).request(REQUEST, 5)


async def test_a_connection_that_breaks_means_that_anything_may_have_been_done(pool_of):
    async with Peer(None, b"not HTTP at all") as peer:
        pool = pool_of(peer)
        for _ in range(2):
            with pytest.raises(LostAnswerError):
                await pool.request(REQUEST, 5)
        assert (await pool.request(REQUEST, 5)).status == 201


async def test_an_overdue_answer_is_given_up(pool_of, monkeypatch):
    monkeypatch.setattr("poseidon_py.kube.short_requests._SWEEP_SECONDS", 0.001)
    async with Peer() as peer:
        pool = pool_of(peer)
        await pool.request(REQUEST, 5)
        peer.hold = asyncio.Event()
        with pytest.raises(LostAnswerError, match="in time"):
            await pool.request(REQUEST, 0.0)
        peer.hold.set()


async def test_the_answer_to_a_cancelled_request_is_not_taken_for_another_ones(pool_of):
    async with Peer(b"HTTP/1.1 418 Late\r\nContent-Length: 0\r\n\r\n") as peer:
        peer.hold = asyncio.Event()
        pool = pool_of(peer, limit=1)
        first = asyncio.create_task(pool.request(REQUEST, 5))
        second = asyncio.create_task(pool.request(REQUEST, 5))
        while not peer.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        peer.hold.set()
        assert (await second).status in (201, 418)  # a connection of its own: whatever the server says to *it*
        assert peer.connections == 2


async def test_a_cancelled_wait_for_a_turn_passes_the_turn_on(pool_of):
    async with Peer() as peer:
        peer.hold = asyncio.Event()
        pool = pool_of(peer, limit=1)
        tasks = [asyncio.create_task(pool.request(REQUEST, 5)) for _ in range(3)]
        release = pool._release

        def release_and_cancel(connection):
            release(connection)
            tasks[1].cancel()  # its turn has come, and it has not run yet

        pool._release = release_and_cancel
        while not peer.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)
        peer.hold.set()
        assert (await asyncio.wait_for(tasks[2], 5)).status == 201
        assert tasks[1].cancelled()
