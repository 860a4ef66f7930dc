"""Which modules a process that serves does not load: each would take memory from the start, in every cluster."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

ENGINE = """
from firmament_py.cli import main
from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.policy import registry
from tests.builders import NOW_US, make_class, make_node, make_tasks

engine = Engine(registry.load(registry.DEFAULT_POLICY, {}), OrToolsSolver())
engine.apply([make_node("a", cpu=4), make_class(1, cpu=1), make_tasks([1, 2], 1)])
result = engine.run_round(NOW_US)
assert result.stats.placed == 2
"""
"""A service, until it has placed tasks that fit."""

BRIDGE = """
import asyncio
from pathlib import Path
from poseidon_py.app import bridge, runtime, startup
from poseidon_py.app.serving import http_endpoints
from poseidon_py.cli import main, run
from poseidon_py.kube import credentials, service_account

run.loop_factory()
service_account.server = lambda: "http://127.0.0.1:1"
service_account.token = lambda: "x"
credentials.trusting = lambda _: None
credentials.os.environ.pop("KUBECONFIG", None)
credentials.Path.home = lambda: Path("/nonexistent")
access = asyncio.run(credentials.load(None, None))
assert access.in_cluster
"""
"""A bridge in a pod, with its credentials."""

DEVELOPMENT = {"pytest", "hypothesis", "matplotlib", "jinja2", "jsonschema", "orjson", "jsonpatch", "benchmarks"}
NEEDLESS = {
    "engine": DEVELOPMENT | {"numba", "llvmlite", "networkx", "scipy", "pandas", "ortools.math_opt", "ortools.sat"}
    | {"kubernetes", "aiohttp", "poseidon_py", "rich"},
    "bridge": DEVELOPMENT | {"numpy", "ortools", "numba", "networkx", "firmament_py", "rich"}
    | {"kubernetes", "pydantic", "requests", "urllib3", "oauthlib", "websocket", "dateutil"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(("name", "program"), [("engine", ENGINE), ("bridge", BRIDGE)], ids=["engine", "bridge"])
def test_a_serving_process_does_not_load(name: str, program: str):
    program += "\nimport json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    loaded = json.loads(done.stdout)
    assert {f"{name_}_py" for name_ in ("firmament", "poseidon")} & {*loaded}
    assert [each for each in NEEDLESS[name] if each in loaded] == []
