"""The small HTTP client: parsing, and errors by their possible effect on the server."""

import asyncio
from unittest.mock import Mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.requests.short_requests import (
    MAX_ANSWER,
    AnswerParser,
    LostAnswerError,
    NotSentError,
    Pool,
    _Connection,
)
from tests.poseidon_py.kube.mutations import cut, mutated

OK = b"HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
REQUEST = b"POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 0\r\n\r\n"

ANSWERS = [
    (OK, 201, b"ok"),
    (CHUNKED + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", 200, b"abcde"),
    (CHUNKED + b"A\r\n0123456789\r\n0\r\nT: 1\r\nU: 2\r\n\r\n", 200, b"0123456789"),
    (b"HTTP/1.1 204 No Content\r\n\r\n", 204, b""),
    (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, 201, b"ok"),
    (b"HTTP/1.1 429 Too Many Requests\r\nRETRY-AFTER:  7 \r\ncontent-length:0\r\n\r\n", 429, b""),
    (b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
]


@pytest.mark.parametrize(("data", "status", "body"), ANSWERS)
def test_an_answer_is_parsed_in_pieces_of_any_size(data, status, body):
    for at in range(1, len(data)):
        parser = AnswerParser()
        assert parser.feed(data[:at]) is None
        answer = parser.feed(data[at:])
        assert answer is not None
        assert (answer.status, answer.body) == (status, body)
        assert parser.reusable is not data.startswith(b"HTTP/1.0")
        assert answer.header(b"retry-after") == (b"7" if status == 429 else None)


@pytest.mark.parametrize("others", [b"next", b"H", OK])
def test_bytes_after_an_answer_make_the_connection_unusable(others):
    parser = AnswerParser()
    answer = parser.feed(OK + others)
    assert answer is not None
    assert (answer.status, answer.body, parser.reusable) == (201, b"ok", False)


def headed(*lines: bytes, body: bytes = b"abc") -> bytes:
    return b"\r\n".join((b"HTTP/1.1 200 OK", *lines, b"", body))


@pytest.mark.parametrize(
    ("data", "says"),
    [
        pytest.param(b"SSH-2.0-x\r\n\r\n", "not HTTP", id="another protocol"),
        pytest.param(b"GARBAGE", "not HTTP", id="garbage"),
        pytest.param(headed(), "unknown length", id="no length"),
        pytest.param(headed(b"Transfer-Encoding: gzip"), "unknown length", id="an encoding without end"),
        pytest.param(headed(b"Connection: close"), "unknown length", id="until closed"),
        pytest.param(b"HTTP/1.1 101 Switching\r\n\r\n", "status 101", id="another protocol from here on"),
        pytest.param(b"HTTP/1.1 001 Odd\r\n\r\n", "status 1", id="odd status"),
        pytest.param(headed(b"Content-Length: -3"), "Content-Length", id="negative length"),
        pytest.param(headed(b"Content-Length: +3"), "Content-Length", id="length with a plus"),
        pytest.param(headed(b"Content-Length: 0_3"), "Content-Length", id="length with an underscore"),
        pytest.param(headed(b"Content-Length: 3", b"Content-Length: 3"), "Content-Length", id="two lengths"),
        pytest.param(headed(b"Content-Length: 3", b"Transfer-Encoding: chunked"), "Content-Length", id="two framings"),
        pytest.param(CHUNKED + b"-6\r\nabc", "chunk size", id="negative chunk"),
        pytest.param(CHUNKED + b"+3\r\nabc\r\n0\r\n\r\n", "chunk size", id="chunk with a plus"),
        pytest.param(CHUNKED + b"0_3\r\nabc\r\n0\r\n\r\n", "chunk size", id="chunk with an underscore"),
        pytest.param(CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n", "chunk size", id="chunk with a prefix"),
        pytest.param(CHUNKED + b"2\r\nabc\r\n0\r\n\r\n", "chunk data", id="chunk longer than it says"),
    ],
)
def test_an_answer_that_is_not_http_is_rejected_with_the_reason(data, says):
    with pytest.raises(ValueError, match=says):
        AnswerParser().feed(data)


@pytest.mark.parametrize(
    ("start", "piece", "limit"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 999999999\r\n\r\n", b"x" * 1000, 100_000, id="one body"),
        pytest.param(CHUNKED, b"1\r\nx\r\n", 100_000, id="chunks without end"),
        pytest.param(CHUNKED + b"0\r\n", b"T: 1\r\n", 100_000, id="trailers without end"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n", 65_536, id="headers without end"),
        pytest.param(b"HTTP/1.1 200 OK\r\nX: ", b"y" * 100, 65_536, id="a header without end"),
        pytest.param(b"", b"HTTP/1.1 102 Processing\r\n\r\n", 65_536, id="1xx without end"),
    ],
)
def test_an_answer_that_is_too_long_is_refused(start, piece, limit):
    parser = AnswerParser(100_000)
    parser.feed(start)
    taken = (parser.feed(piece) for _ in range(limit // len(piece) + 1))
    with pytest.raises(ValueError, match=str(limit)):
        assert not any(taken)


def test_the_limit_applies_to_each_answer_of_a_connection():
    parser = AnswerParser(2 * len(OK))
    for _ in range(10):
        assert parser.feed(OK[:-1]) is None
        assert parser.feed(OK[-1:]) is not None
        assert parser.reusable


def test_headers_are_those_of_one_answer_and_trailers_none():
    parser = AnswerParser()
    first = parser.feed(headed(b"Transfer-Encoding: chunked", b"A: 1", body=b"0\r\nT: 2\r\n\r\n"))
    second = parser.feed(OK)
    assert first is not None
    assert second is not None
    assert [answer.header(b"a") for answer in (first, second)] == [b"1", None]
    assert [answer.header(b"t") for answer in (first, second)] == [None, None]


@given(st.lists(st.binary(min_size=1, max_size=50), max_size=5))
def test_chunks_add_up(parts):
    stream = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
    answer = AnswerParser().feed(CHUNKED + stream)
    assert answer is not None
    assert answer.body == b"".join(parts)


TOKENS = [
    *(b"-6 + _ 0x 0 9999999999999999999999 \xff \x00".split(b" ")),
    *(b"\r\n", b"\r", b"\n", b"\r\n\r\n", b" ", b"\t", b":", b";"),
    *(
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Transfer-Encoding: x\r\n",
        b"Connection: close\r\n",
    ),
    *(b"Upgrade: h2c\r\nConnection: upgrade\r\n", b"HTTP/1.1 101 x\r\n\r\n", b"HTTP/1.1 100 x\r\n\r\n"),
]


def outcome(pieces):
    parser = AnswerParser()
    try:
        for piece in pieces:
            if (answer := parser.feed(piece)) is not None:
                return answer
    except ValueError:
        return "refused"
    return "incomplete"


@given(cut(mutated([data for data, _, _ in ANSWERS], TOKENS)))
def test_the_pieces_of_a_broken_answer_do_not_change_its_outcome(pieces):
    assert outcome(pieces) == outcome([b"".join(pieces)])


@given(cut(mutated([data for data, _, _ in ANSWERS], TOKENS)))
def test_with_any_broken_answer_a_request_has_one_outcome(pieces):
    """Every piece is read at most once, and the request has an answer or one of our errors at the server's close."""

    async def run():
        pool = Pool("h", 1, None, 1)
        connection = _Connection(pool)
        transport = Mock(is_closing=Mock(return_value=False))
        transport.abort.side_effect = lambda: transport.is_closing.configure_mock(return_value=True)
        pool._all.add(connection)
        connection.connection_made(transport)
        waiter = connection.send(REQUEST, 1.0)
        for piece in pieces:
            if transport.is_closing():
                break
            connection.data_received(piece)
        connection.connection_lost(None)
        assert waiter.done()
        assert waiter.exception() is None or isinstance(waiter.exception(), LostAnswerError)
        assert not pool._all
        assert not pool._idle

    asyncio.run(run())


class Peer:
    """A server on loopback that counts connections and answers by script: bytes, or None to close; then with the
    path that was asked for."""

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
                path = (await reader.readuntil(b"\r\n\r\n")).split()[1]
                self.requests += 1
                if self.hold is not None:
                    await self.hold.wait()
                echo = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%b" % (len(path), path)
                answer = self.answers.pop(0) if self.answers else echo
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


async def test_connections_are_bounded_and_every_request_is_sent(pool_of):
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


async def test_an_unreachable_server_means_that_nothing_was_sent(pool_of):
    async with Peer() as peer:
        pass
    with pytest.raises(NotSentError):
        await pool_of(peer).request(REQUEST, 5)


async def test_a_broken_connection_means_that_the_outcome_is_unknown(pool_of):
    async with Peer(None, b"not HTTP at all") as peer:
        pool = pool_of(peer)
        for _ in range(2):
            with pytest.raises(LostAnswerError):
                await pool.request(REQUEST, 5)
        assert (await pool.request(REQUEST, 5)).status == 201


async def test_an_overdue_answer_is_given_up(pool_of, monkeypatch):
    monkeypatch.setattr("poseidon_py.kube.requests.short_requests._SWEEP_SECONDS", 0.001)
    async with Peer() as peer:
        pool = pool_of(peer)
        await pool.request(REQUEST, 5)
        peer.hold = asyncio.Event()
        with pytest.raises(LostAnswerError, match="in time"):
            await pool.request(REQUEST, 0.0)
        peer.hold.set()


@pytest.mark.parametrize(
    "unasked", [b"HTTP/1.1 418 Late\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 418 La"], ids=["whole", "begun"]
)
async def test_an_unsolicited_answer_is_not_taken_for_the_next_one(pool_of, unasked):
    async with Peer() as peer:
        pool = pool_of(peer)
        await pool.request(REQUEST, 5)
        (connection,) = pool._all
        connection.data_received(unasked)
        assert (await pool.request(REQUEST, 5)).status == 201
        assert peer.connections == 2


async def test_an_answer_without_end_is_given_up_and_its_size_named(pool_of):
    async with Peer(headed(b"Content-Length: 400000000", body=bytes(MAX_ANSWER + 1))) as peer:
        pool = pool_of(peer)
        with pytest.raises(LostAnswerError, match=f"the server's answer has more than {MAX_ANSWER} bytes"):
            await pool.request(REQUEST, 30)
        assert (await pool.request(REQUEST, 5)).status == 201


async def test_the_answer_to_a_cancelled_request_is_not_taken_for_another_ones(pool_of):
    async with Peer() as peer:
        peer.hold = asyncio.Event()
        pool = pool_of(peer, limit=1)
        first = asyncio.create_task(pool.request(REQUEST.replace(b"/x", b"/first"), 5))
        second = asyncio.create_task(pool.request(REQUEST.replace(b"/x", b"/second"), 5))
        while not peer.requests:  # noqa: ASYNC110
            await asyncio.sleep(0)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        peer.hold.set()
        assert (await second).body == b"/second"
        assert peer.connections == 2


async def test_a_cancelled_wait_for_a_connection_wakes_the_next(pool_of):
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
