"""Direct calls: the replies of gRPC, whatever pieces a call comes in; failures end one call, not others."""

import os
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.service.server import Server
from policies.load_spreading import LoadSpreading
from protos import frames
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks

APPLY, ROUND = frames.METHODS.index("Apply"), frames.METHODS.index("Round")


class Client:
    """One connection for direct calls."""

    def __init__(self, path: str) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        try:
            self.socket.connect(path + frames.SUFFIX)
        except OSError:
            self.socket.close()
            raise

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *error: object) -> None:
        self.socket.close()

    def send(self, method: int, message) -> None:
        self.socket.sendall(frames.frame(method, message.SerializeToString()))

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
        self.send(APPLY, flow_pb2.Update(**parts))
        kind, body = self.receive()
        assert kind == frames.DONE, body
        return flow_pb2.UpdateReply.FromString(body)

    def round(self, epoch: int) -> flow_pb2.RoundReply:
        self.send(ROUND, flow_pb2.RoundRequest(epoch=epoch, now_us=NOW_US))
        kind, body = self.receive()
        assert kind == frames.DONE, body
        return flow_pb2.RoundReply.FromString(body)


@pytest.fixture
def engine():
    return Engine(LoadSpreading(), OrToolsSolver(), lambda: NOW_US)


@pytest.fixture
def path(engine, tmp_path):
    server = Server(engine, f"unix:{tmp_path}/s")
    server.start()
    yield f"{tmp_path}/s"
    server.stop(5)
    assert not os.path.exists(f"{tmp_path}/s{frames.SUFFIX}")


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
    call = frames.frame(APPLY, flow_pb2.Update(**small(engine)).SerializeToString())
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
    client.socket.sendall(frames.frame(APPLY, b"\xff\xff"))
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
        client.send(ROUND, flow_pb2.RoundRequest(epoch=engine.epoch, now_us=NOW_US))
        kind, body = client.receive()
    assert (kind, frames.failure_of(body)) == (frames.FAILED, ("UNKNOWN", "RuntimeError: no such table"))
    assert "Round failed: a defect" in caplog.text
    assert set(placed(client.round(engine.epoch))) == {1, 2, 3}


@pytest.mark.parametrize(
    "head", [frames.HEAD.pack(1, len(frames.METHODS)), frames.HEAD.pack(frames.MAX_BYTES + 1, APPLY)]
)
def test_what_is_no_call_ends_its_connection_alone(engine, path, client, head):
    client.socket.sendall(head + b"x")
    with pytest.raises((EOFError, ConnectionResetError)):
        client.receive()
    with Client(path) as other:
        assert other.apply(**small(engine)).epoch == engine.epoch


def test_a_caller_that_has_left_while_it_waited_for_the_lock_changes_nothing(engine, path, client):
    with engine.lock:
        client.send(APPLY, flow_pb2.Update(**small(engine)))
        client.socket.close()
        time.sleep(0.05)
    with Client(path) as other:
        assert placed(other.round(engine.epoch)) == {}
    assert len(engine.state.tasks) == 0


def test_a_running_call_ends_before_the_server_and_idle_connections_do_not_delay_it(engine, tmp_path):
    server = Server(engine, f"unix:{tmp_path}/s")
    server.start()
    with Client(f"{tmp_path}/s") as client, Client(f"{tmp_path}/s") as idle:
        idle.apply(epoch=engine.epoch, classes=[task_class(1, cpu=1)])
        with engine.lock:
            client.send(APPLY, flow_pb2.Update(epoch=engine.epoch, tasks=tasks([1], 1)))
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
        left.bind(f"{tmp_path}/s{frames.SUFFIX}")
    server = Server(engine, f"unix:{tmp_path}/s")
    server.start()
    with Client(f"{tmp_path}/s") as client:
        assert client.apply(**small(engine)).epoch == engine.epoch
    server.stop(0)


def test_a_path_without_space_for_the_suffix_serves_grpc_alone(engine, tmp_path):
    path = f"{tmp_path}/" + "s" * (107 - len(f"{tmp_path}/"))
    server = Server(engine, f"unix:{path}")
    server.start()
    assert os.path.exists(path)
    assert len(os.listdir(tmp_path)) == 1
    server.stop(0)


def test_neither_a_port_nor_tls_takes_direct_calls(engine, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    server = Server(engine, "127.0.0.1:0")
    server.start()
    assert os.listdir(tmp_path) == []
    server.stop(0)
