"""Direct calls as the bridge makes them, frame by frame, to a service that answers as a test says."""

import asyncio

import pytest

from poseidon_py.feed.client import EngineClient, EngineError
from poseidon_py.feed.transport.direct import DirectTransport
from poseidon_py.feed.transport.transport import CallError
from poseidon_py.metrics.metrics import Metrics
from protos import frames
from protos.gen import flow_pb2

REPLY = flow_pb2.UpdateReply(epoch=7)


class Service:
    """Answers each call with what `answer` returns for it, None: not at all."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.calls: list[tuple[str, bytes]] = []
        self.connections = 0
        self.ended = 0
        self.answer = lambda: frames.frame(frames.DONE, REPLY.SerializeToString())
        self.pieces = 1 << 20
        self.reads = True
        """The messages of a call before it answers."""
        self._called = asyncio.Condition()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.path)

    async def stop(self) -> None:
        self._server.close()

    async def _serve(self, reader, writer) -> None:
        self.connections += 1
        try:
            while True:
                kind, body = await self._frame(reader)
                assert kind == frames.CALL
                self.calls.append((body.decode(), b""))
                while self.reads and (frame := await self._frame(reader))[0] != frames.END:
                    self.calls[-1] = (body.decode(), self.calls[-1][1] + frame[1])
                await self._tell()
                answer = self.answer()
                if answer is None:
                    if not self.reads:
                        await asyncio.Event().wait()
                    continue
                for at in range(0, len(answer), self.pieces):
                    writer.write(answer[at : at + self.pieces])
                    await writer.drain()
                    await asyncio.sleep(0)
                if not answer:
                    return
                if not self.reads:
                    await self._tell()
                    while await reader.read(1 << 16):
                        pass
                    return
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            self.ended += 1
            writer.close()
            await self._tell()

    async def _frame(self, reader) -> tuple[int, bytes]:
        length, kind = frames.HEAD.unpack(await reader.readexactly(frames.HEAD.size))
        return kind, await reader.readexactly(length)

    async def _tell(self) -> None:
        async with self._called:
            self._called.notify_all()

    async def until(self, met) -> None:
        async with asyncio.timeout(10), self._called:
            await self._called.wait_for(met)


@pytest.fixture
async def service(tmp_path):
    made = Service(f"{tmp_path}/s")
    await made.start()
    yield made
    await made.stop()


@pytest.fixture
async def engine(service):
    made = EngineClient(f"direct:{service.path}", 10)
    yield made
    await made.close()


async def test_updates_and_rounds_share_a_connection(service, engine):
    update, request = flow_pb2.Update(epoch=3), flow_pb2.RoundRequest(epoch=4)
    assert await engine.apply(update) == REPLY
    service.answer = lambda: frames.frame(frames.DONE, flow_pb2.RoundReply(round=9).SerializeToString())
    assert (await engine.round(request)).round == 9
    assert service.calls == [("Apply", update.SerializeToString()), ("Round", request.SerializeToString())]
    assert service.connections == 1


async def test_calls_at_once_have_a_connection_each(service, engine):
    assert await asyncio.gather(*(engine.apply(flow_pb2.Update(epoch=n)) for n in range(5))) == [REPLY] * 5
    assert service.connections == 5
    assert await engine.apply(flow_pb2.Update()) == REPLY
    assert service.connections == 5


async def test_a_reply_may_come_byte_by_byte(service, engine):
    service.pieces = 1
    assert await engine.apply(flow_pb2.Update()) == REPLY


async def test_a_large_reply(service, engine):
    reply = flow_pb2.UpdateReply(unknown_classes=range(1 << 40, (1 << 40) + 100_000))
    service.answer = lambda: frames.frame(frames.DONE, reply.SerializeToString())
    assert await engine.apply(flow_pb2.Update()) == reply


async def test_a_failure_has_the_code_of_the_service(service, engine):
    service.answer = lambda: frames.frame(frames.FAILED, frames.failure("UNKNOWN", "KeyError: 'a b'"))
    with pytest.raises(EngineError, match="KeyError: 'a b'") as caught:
        await engine.apply(flow_pb2.Update())
    assert caught.value.code == "UNKNOWN"
    service.answer = lambda: frames.frame(frames.DONE, REPLY.SerializeToString())
    assert await engine.apply(flow_pb2.Update()) == REPLY
    assert service.connections == 1


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        (b"", "UNAVAILABLE"),
        (frames.frame(7, b""), "INTERNAL"),
        (2 * frames.frame(frames.DONE, b""), "INTERNAL"),
        (frames.frame(frames.DONE, b"\xff\xff"), "INTERNAL"),
    ],
    ids=["it closes the connection", "an unknown kind", "two replies", "another message"],
)
async def test_what_is_no_reply_fails_the_call_alone(service, answer, code):
    metrics = Metrics()
    engine = EngineClient(f"direct:{service.path}", 10, metrics=metrics)
    service.answer = lambda: answer
    with pytest.raises(EngineError) as caught:
        await engine.apply(flow_pb2.Update())
    assert caught.value.code == code
    assert metrics.rpc_errors.labels("Apply", code)._value.get() == 1
    service.answer = lambda: frames.frame(frames.DONE, REPLY.SerializeToString())
    assert await engine.apply(flow_pb2.Update()) == REPLY
    await engine.close()


async def test_a_call_that_takes_too_long_is_given_up_and_the_service_learns_of_it(service):
    engine = EngineClient(f"direct:{service.path}", 0.05)
    service.answer = lambda: None
    with pytest.raises(EngineError) as caught:
        await engine.apply(flow_pb2.Update())
    assert caught.value.code == "DEADLINE_EXCEEDED"
    await service.until(lambda: service.ended == 1)
    await engine.close()


async def test_a_caller_that_is_cancelled_is_cancelled_and_the_service_learns_of_it(service, engine):
    service.answer = lambda: None
    call = asyncio.create_task(engine.apply(flow_pb2.Update()))
    await service.until(lambda: service.calls)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    await service.until(lambda: service.ended == 1)


async def test_a_service_that_moves_fails_calls_in_flight(service, engine, tmp_path):
    service.answer = lambda: None
    call = asyncio.create_task(engine.apply(flow_pb2.Update()))
    await service.until(lambda: service.calls)
    await engine.move(f"direct:{tmp_path}/other")
    with pytest.raises(EngineError) as caught:
        await call
    assert caught.value.code == "CLOSED"


async def test_an_idle_connection_that_was_closed_is_not_used(service, engine):
    assert await engine.apply(flow_pb2.Update()) == REPLY
    service.answer = lambda: b""
    with pytest.raises(EngineError):
        await engine.apply(flow_pb2.Update())
    service.answer = lambda: frames.frame(frames.DONE, REPLY.SerializeToString())
    assert await engine.apply(flow_pb2.Update()) == REPLY
    assert service.connections == 2


async def updates(count: int, size: int = 0, forever: bool = False):
    """Messages of some size, in bytes."""
    number = 0
    while forever or number < count:
        yield flow_pb2.Update(epoch=number + 1, removed_nodes=["x" * size])
        number += 1


async def test_a_stream_is_one_call(service, engine):
    sent = [each async for each in updates(3)]
    assert await engine.resync(updates(3)) == REPLY
    assert await engine.apply(flow_pb2.Update()) == REPLY
    assert service.calls == [("Resync", b"".join(each.SerializeToString() for each in sent)), ("Apply", b"")]
    assert service.connections == 1


async def test_a_stream_is_sent_no_faster_than_it_is_read(service, engine):
    service.reads, service.answer = False, lambda: None
    given = 0

    async def counted():
        nonlocal given
        async for each in updates(0, size=1 << 16, forever=True):
            given += 1
            yield each

    call = asyncio.create_task(engine.resync(counted()))
    await service.until(lambda: service.calls)
    before = -1
    while before != given:
        before = given
        for _ in range(100):
            await asyncio.sleep(0)
    assert 0 < given < 200  # 200 are 13 MB, more than both ends buffer
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


async def test_a_stream_that_fails_before_its_end_is_not_continued(service, engine):
    service.reads = False
    service.answer = lambda: frames.frame(frames.FAILED, frames.failure("INVALID_ARGUMENT", "not so"))
    with pytest.raises(EngineError, match="not so") as caught:
        async with asyncio.timeout(10):
            await engine.resync(updates(0, forever=True, size=1000))
    assert caught.value.code == "INVALID_ARGUMENT"
    await service.until(lambda: service.ended == 1)  # its connection is not used again
    service.reads, service.answer = True, lambda: frames.frame(frames.DONE, REPLY.SerializeToString())
    assert await engine.apply(flow_pb2.Update()) == REPLY
    assert service.connections == 2


async def test_what_fails_while_a_stream_is_made_fails_the_call(service, engine):
    async def broken():
        yield flow_pb2.Update()
        raise KeyError("a pod")

    with pytest.raises(KeyError, match="a pod"):
        await engine.resync(broken())
    await service.until(lambda: service.ended == 1)
    assert await engine.apply(flow_pb2.Update()) == REPLY


async def test_few_connections_stay_idle(service, engine):
    await asyncio.gather(*(engine.apply(flow_pb2.Update(epoch=n)) for n in range(20)))
    await service.until(lambda: service.ended == service.connections - 8)
    assert service.connections == 20


async def test_nothing_is_sent_once_it_is_closed(service):
    direct = DirectTransport(service.path)
    await direct.close()
    with pytest.raises(CallError) as caught:
        await direct.call("Apply", flow_pb2.Update(), flow_pb2.UpdateReply, 10)
    assert caught.value.code == "CLOSED"
    assert service.calls == []


@pytest.mark.parametrize("path", ["/not/there", "/" + "x" * 200], ids=["missing", "too long"])
async def test_a_socket_that_cannot_be_reached_is_named(path):
    with pytest.raises(CallError, match="cannot connect to /") as caught:
        await DirectTransport(path).call("Apply", flow_pb2.Update(), flow_pb2.UpdateReply, 10)
    assert caught.value.code == "UNAVAILABLE"


async def test_a_message_that_no_frame_takes_is_not_sent(service, engine, monkeypatch):
    monkeypatch.setattr(frames, "MAX_BYTES", 3)
    with pytest.raises(EngineError) as caught:
        await engine.apply(flow_pb2.Update(removed_nodes=["1234"]))
    assert caught.value.code == "RESOURCE_EXHAUSTED"
    assert service.connections == 0
