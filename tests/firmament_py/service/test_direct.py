"""Direct calls: the replies of gRPC, whatever pieces a call comes in; failures end one call, not others."""

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import CannotListenError, Server
from policies.load_spreading import LoadSpreading
from protos import frames
from protos.gen import flow_pb2, stats_pb2, stats_pb2_grpc
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks


def message_frame(message) -> bytes:
    return frames.frame(frames.MESSAGE, message.SerializeToString())


class Client:
    """One connection for direct calls."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        try:
            self.socket.connect(path)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def send(self, method: str, *messages) -> None:
        for each in (frames.call(method), *map(message_frame, messages), frames.frame(frames.END)):
            self.socket.sendall(each)

    def receive(self) -> tuple[int, bytes]:
        with self.socket.makefile("rb", 0) as replies:
            head = replies.read(frames.HEAD.size)
            if not head:
                raise EOFError
            length, kind = frames.HEAD.unpack(head)
            body = b""
            while len(body) < length:
                body += replies.read(length - len(body))
            return kind, body

    def apply(self, **parts) -> flow_pb2.UpdateReply:
        self.send("Apply", flow_pb2.Update(**parts))
        kind, body = self.receive()
        assert kind == frames.DONE, body
        return flow_pb2.UpdateReply.FromString(body)

    def round(self, epoch: int) -> flow_pb2.RoundReply:
        self.send("Round", flow_pb2.RoundRequest(epoch=epoch, now_us=NOW_US))
        kind, body = self.receive()
        assert kind == frames.DONE, body
        return flow_pb2.RoundReply.FromString(body)


@pytest.fixture
def engine():
    return Engine(LoadSpreading(), OrToolsSolver(), lambda: NOW_US)


@pytest.fixture
def path(engine, tmp_path):
    server = Server(engine, f"direct:{tmp_path}/s")
    server.start()
    yield f"{tmp_path}/s"
    server.stop(5)
    assert not os.path.exists(f"{tmp_path}/s")


@pytest.fixture
def client(path):
    with Client(path) as made:
        yield made


def small(engine) -> dict:
    """Node a of 4 cpu, tasks 1, 2, 3 of 1 cpu waiting."""
    return {
        "epoch": engine.epoch,
        "classes": [task_class(1, cpu=1)],
        "nodes": [node("a", cpu=4)],
        "tasks": tasks([1, 2, 3], 1),
    }


def test_an_update_and_a_round_on_one_connection(engine, client):
    assert client.apply(**small(engine)).epoch == engine.epoch
    assert placed(client.round(engine.epoch)) == dict.fromkeys((1, 2, 3), "id-a")
    engine.state.validate()


def test_an_update_with_its_round(engine, client):
    reply = client.apply(**small(engine), round=flow_pb2.RoundRequest(epoch=engine.epoch, now_us=NOW_US))
    assert set(placed(reply.round)) == {1, 2, 3}


def test_a_call_may_come_byte_by_byte(engine, client):
    call = frames.unary("Apply", flow_pb2.Update(**small(engine)).SerializeToString())
    for at in range(len(call)):
        client.socket.sendall(call[at : at + 1])
    assert client.receive()[0] == frames.DONE
    assert len(engine.state.tasks) == 3


def test_a_large_update_and_its_large_reply(engine, client):
    count = 20_000
    update = small(engine) | {"nodes": [node("a", cpu=2 * count, pods=2 * count)], "tasks": tasks(range(1, count), 1)}
    assert len(flow_pb2.Update(**update).SerializeToString()) > 1 << 17  # more than a socket buffers
    client.apply(**update)
    assert len(placed(client.round(engine.epoch))) == count - 1


def test_many_connections_at_once(engine, path, client):
    def one(number: int) -> None:
        with Client(path) as client:
            for uid in range(20 * number + 1, 20 * number + 21):
                client.apply(epoch=engine.epoch, tasks=tasks([uid], 1))

    client.apply(epoch=engine.epoch, classes=[task_class(1, cpu=1)])
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(one, range(8)):
            pass
    assert len(engine.state.tasks) == 160
    engine.state.validate()


def test_a_message_that_cannot_be_decoded_fails_and_the_connection_goes_on(engine, client):
    client.socket.sendall(frames.unary("Apply", b"\xff\xff"))
    kind, body = client.receive()
    assert kind == frames.FAILED
    assert frames.failure_of(body)[0] == "INTERNAL"
    assert client.apply(**small(engine)).epoch == engine.epoch


def test_a_defect_fails_one_call_and_is_logged(engine, client, monkeypatch, caplog):
    def broken(now_us, **options):
        raise RuntimeError("no such table")

    client.apply(**small(engine))
    with monkeypatch.context() as patched:
        patched.setattr(engine, "run_round", broken)
        client.send("Round", flow_pb2.RoundRequest(epoch=engine.epoch, now_us=NOW_US))
        kind, body = client.receive()
    assert (kind, frames.failure_of(body)) == (frames.FAILED, ("UNKNOWN", "RuntimeError: no such table"))
    assert "Round failed: a defect" in caplog.text
    assert set(placed(client.round(engine.epoch))) == {1, 2, 3}


@pytest.mark.parametrize(
    "sent",
    [
        frames.frame(frames.MESSAGE, b"x"),
        frames.frame(9, b"x"),
        frames.HEAD.pack(frames.MAX_BYTES + 1, frames.CALL),
        frames.call("Apply") + frames.HEAD.pack(frames.MAX_BYTES + 1, frames.MESSAGE),
        frames.call("Apply") + frames.call("Apply"),
    ],
    ids=["no call", "unknown kind", "long name", "long message", "a call in a call"],
)
def test_what_is_no_call_ends_its_connection_alone(engine, path, client, caplog, sent):
    client.socket.sendall(sent)
    with pytest.raises((EOFError, ConnectionResetError)):
        client.receive()
    assert "direct call refused: " in caplog.text
    with Client(path) as other:
        assert other.apply(**small(engine)).epoch == engine.epoch


@pytest.mark.parametrize(
    ("method", "messages", "code"),
    [
        ("Schedule", [flow_pb2.Update()], "UNIMPLEMENTED"),
        ("Apply", [], "INTERNAL"),
        ("Apply", [flow_pb2.Update()] * 3, "INTERNAL"),
    ],
    ids=["of another contract", "no message", "three messages"],
)
def test_a_call_that_cannot_be_answered_fails_and_the_connection_goes_on(engine, client, method, messages, code):
    client.send(method, *messages)
    kind, body = client.receive()
    assert (kind, frames.failure_of(body)[0]) == (frames.FAILED, code)
    assert client.apply(**small(engine)).epoch == engine.epoch


def test_a_stream_replaces_the_state(engine, client):
    before, parts = engine.epoch, small(engine)
    del parts["epoch"]
    tasks_of = parts.pop("tasks")
    client.send("Resync", flow_pb2.Update(**parts), flow_pb2.Update(tasks=tasks_of), flow_pb2.Update(complete=True))
    kind, body = client.receive()
    assert kind == frames.DONE
    assert flow_pb2.UpdateReply.FromString(body).epoch == engine.epoch != before
    assert set(placed(client.round(engine.epoch))) == {1, 2, 3}


def test_a_stream_that_is_not_complete_changes_nothing(engine, client):
    client.send("Resync", flow_pb2.Update(nodes=[node("a", cpu=4)]))
    kind, body = client.receive()
    assert (kind, frames.failure_of(body)[0]) == (frames.FAILED, "INVALID_ARGUMENT")
    assert "complete is not set" in frames.failure_of(body)[1]
    assert len(engine.state.nodes) == 0
    assert client.apply(**small(engine)).epoch == engine.epoch


def test_a_stream_whose_sender_dies_changes_nothing(engine, path, caplog):
    before = engine.epoch
    with Client(path) as client:
        client.socket.sendall(frames.call("Resync") + message_frame(flow_pb2.Update(complete=True)))
    with Client(path) as other:
        other.send("Hello", flow_pb2.HelloRequest())
        assert flow_pb2.HelloReply.FromString(other.receive()[1]).epoch == before
    assert caplog.text == ""


def test_a_stream_that_fails_in_the_middle_is_read_to_its_end(engine, client):
    """Else the caller, which still sends, would find a broken connection instead of the reason."""
    large = flow_pb2.Update(tasks=tasks(range(1, 20_000), 1))
    client.socket.sendall(frames.call("Resync") + frames.frame(frames.MESSAGE, b"\xff\xff"))
    kind, body = client.receive()
    assert (kind, frames.failure_of(body)[0]) == (frames.FAILED, "INTERNAL")
    for _ in range(10):
        client.socket.sendall(message_frame(large))  # more than a socket buffers
    client.socket.sendall(frames.frame(frames.END))
    assert client.apply(**small(engine)).epoch == engine.epoch


def test_a_reply_that_no_frame_takes_fails(engine, client, monkeypatch):
    with monkeypatch.context() as patched:
        patched.setattr(frames, "MAX_BYTES", 100)
        client.send("Hello", flow_pb2.HelloRequest())
        kind, body = client.receive()
    assert (kind, frames.failure_of(body)[0]) == (frames.FAILED, "RESOURCE_EXHAUSTED")
    assert client.apply(**small(engine)).epoch == engine.epoch


def test_a_caller_that_has_left_while_it_waited_for_the_lock_changes_nothing(engine, path, client):
    with engine.lock:
        client.send("Apply", flow_pb2.Update(**small(engine)))
        client.socket.close()
        time.sleep(0.05)
    with Client(path) as other:
        assert placed(other.round(engine.epoch)) == {}
    assert len(engine.state.tasks) == 0


def test_a_running_call_ends_before_the_server_and_idle_connections_do_not_delay_it(engine, tmp_path):
    server = Server(engine, f"direct:{tmp_path}/s")
    server.start()
    with Client(f"{tmp_path}/s") as client, Client(f"{tmp_path}/s") as idle:
        idle.apply(epoch=engine.epoch, classes=[task_class(1, cpu=1)])
        with engine.lock:
            client.send("Apply", flow_pb2.Update(epoch=engine.epoch, tasks=tasks([1], 1)))
            time.sleep(0.05)
            stopping = threading.Thread(target=server.stop, args=(20,))
            stopping.start()
            with pytest.raises(EOFError):
                idle.receive()
        assert client.receive()[0] == frames.DONE
    stopping.join(20)
    assert not stopping.is_alive()
    with pytest.raises(FileNotFoundError):
        Client(f"{tmp_path}/s")


def test_the_socket_of_a_killed_process_is_replaced(engine, tmp_path):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(f"{tmp_path}/s")
    server = Server(engine, f"direct:{tmp_path}/s")
    server.start()
    with Client(f"{tmp_path}/s") as client:
        assert client.apply(**small(engine)).epoch == engine.epoch
    server.stop(0)


def test_a_socket_on_which_a_process_listens_is_not_replaced(engine, path):
    with pytest.raises(CannotListenError, match="in use"):
        Server(engine, f"direct:{path}")
    with Client(path) as client:
        assert client.apply(**small(engine)).epoch == engine.epoch


def test_a_folder_that_is_missing_is_reported(engine, tmp_path):
    with pytest.raises(CannotListenError, match="not a path where a socket can be created"):
        Server(engine, f"direct:{tmp_path}/missing/s")


def test_statistics_have_a_port_of_their_own(engine, tmp_path):
    server = Server(engine, f"direct:{tmp_path}/s", None, "127.0.0.1:0")
    server.start()
    with grpc.insecure_channel(f"127.0.0.1:{server.stats_port}") as channel:
        stub = stats_pb2_grpc.PoseidonStatsStub(channel)
        replies = stub.ReceivePodStats(iter([stats_pb2.PodStats(name="a")]), timeout=20)
        assert [each.type for each in replies] == [stats_pb2.POD_NOT_FOUND]
    with Client(f"{tmp_path}/s") as client:
        assert client.apply(**small(engine)).epoch == engine.epoch
    server.stop(5)
