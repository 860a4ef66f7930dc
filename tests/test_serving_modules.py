"""Which modules a process that serves does not load: each would take memory from the start, in every cluster."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ENGINE = """
import socket, tempfile
from firmament_py.cli import main
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.policy import registry
from firmament_py.service.server import Server
from protos import frames
from protos.gen import flow_pb2
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, task_class, tasks

folder = tempfile.TemporaryDirectory()
engine = Engine(registry.load(registry.DEFAULT_POLICY, {}), OrToolsSolver(), lambda: NOW_US)
server = Server(engine, f"direct:{folder.name}/s")
server.start()
connection = socket.socket(socket.AF_UNIX)
connection.connect(f"{folder.name}/s")
replies = connection.makefile("rb")


def call(method, reply, *messages):
    bodies = [frames.frame(frames.MESSAGE, each.SerializeToString()) for each in messages]
    connection.sendall(b"".join([frames.call(method), *bodies, frames.frame(frames.END)]))
    length, kind = frames.HEAD.unpack(replies.read(frames.HEAD.size))
    body = replies.read(length)
    assert kind == frames.DONE, body
    return reply.FromString(body)


def placed():
    request = flow_pb2.RoundRequest(epoch=engine.epoch, now_us=NOW_US)
    return sorted(call("Round", flow_pb2.RoundReply, request).placed.task_uid)


assert call("Hello", flow_pb2.HelloReply, flow_pb2.HelloRequest()).policy
nodes, classes = [node("a", cpu=8), node("b", cpu=2)], [task_class(1, cpu=1), task_class(2, cpu=2)]
running = flow_pb2.Update(tasks=tasks([1, 2], 1, on="a"), complete=True)
call("Resync", flow_pb2.UpdateReply, flow_pb2.Update(nodes=nodes, classes=classes), running)
assert placed() == []
assert call("GetStatus", flow_pb2.StatusReply, flow_pb2.StatusRequest()).nodes == 2
if PLACES:
    for waiting in (tasks([3, 4], 1), tasks([5, 6], 2)):
        call("Apply", flow_pb2.UpdateReply, flow_pb2.Update(epoch=engine.epoch, tasks=waiting))
    assert placed() == [3, 4, 5, 6]
connection.close()
server.stop(5)
loaded = set(sys.modules)
"""
"""A service as `poseidon run` starts it. PLACES: until it has placed tasks that fit, else while tasks only run."""

BRIDGE = """
import asyncio
from pathlib import Path
from poseidon_py.app import bridge, runtime, startup
from poseidon_py.app.serving import http_endpoints
from poseidon_py.app.serving.certificate import ServingCertificate
from poseidon_py.cli import main, run
from poseidon_py.config.settings import Settings
from poseidon_py.feed import client
from poseidon_py.kube import credentials, service_account

run.loop_factory()
service_account.server = lambda: "http://127.0.0.1:1"
service_account.token = lambda: "x"
credentials.trusting = lambda _: None
credentials.os.environ.pop("KUBECONFIG", None)
credentials.Path.home = lambda: Path("/nonexistent")


async def start():
    access = await credentials.load(None, None)
    assert access.in_cluster
    ServingCertificate(None, None)
    made = bridge.Bridge(Settings())
    await made.engine.move("direct:/nonexistent/s")
    try:
        await made.engine.hello()
    except client.EngineError as error:
        assert error.code == "UNAVAILABLE"
    await made.engine.close()


asyncio.run(start())
loaded = set(sys.modules)
"""
"""A bridge in a pod, with its credentials, whose flow service is one that it starts."""

DEVELOPMENT = {"pytest", "hypothesis", "matplotlib", "jinja2", "jsonschema", "orjson", "jsonpatch", "benchmarks"}
GRPC = {"grpc", "grpc_health", "protos.gen.flow_pb2_grpc"}
OPENSSL = {"_ssl", "_hashlib"}
_ENGINE = DEVELOPMENT | GRPC | {"numba", "llvmlite", "networkx", "scipy", "pandas", "ortools.math_opt", "ortools.sat"}
NEEDLESS = {
    "idle engine": _ENGINE | OPENSSL | {"ortools", "numpy.random"},
    "engine": _ENGINE,
    "bridge": DEVELOPMENT | GRPC | {"numpy", "ortools", "numba", "networkx", "firmament_py", "rich"}
    | {"kubernetes", "pydantic", "requests", "urllib3", "oauthlib", "websocket", "dateutil"}
    | {"cryptography"},
}  # fmt: skip
PROGRAMS = {"idle engine": f"PLACES = False\n{ENGINE}", "engine": f"PLACES = True\n{ENGINE}", "bridge": BRIDGE}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_serving_process_does_not_load(name: str):
    program = f"import json, sys\n{PROGRAMS[name]}\nprint(json.dumps(sorted(loaded)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert {f"{name_}_py" for name_ in ("firmament", "poseidon")} & {*loaded}
    assert [each for each in NEEDLESS[name] if each in loaded] == []
    if name == "engine":
        assert "ortools.graph.python.min_cost_flow" in loaded
