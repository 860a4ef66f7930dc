"""External policies: the tutorial's package, built from its text, and packages whose policies fail."""

import json
import logging
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace

import grpc
import pytest

from firmament_py.policy import NODE_LIMIT_MAX
from protos.gen import flow_pb2, flow_pb2_grpc
from tests.builders import NOW_US
from tests.firmament_py.service.flow_messages import node, placed, task_class, tasks
from tests.paths import DOCS
from tests.poseidon_py.world import World, template, world_of

# one worker installs the package once
pytestmark = [pytest.mark.e2e, pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.xdist_group("external")]

TUTORIAL = (DOCS / "policies.md").read_text()

FILES: dict[str, str] = dict(
    re.findall(r"^`(headroom-policy/\S+)`:\n\n```\w+\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)
)
COMMANDS = re.findall(r"^```sh\n(.*?)^```$", TUTORIAL, re.DOTALL | re.MULTILINE)

BROKEN = '''
import numpy as np

from firmament_py.policy import AnywherePolicy
from dataclasses import replace


class Raises(AnywherePolicy):
    name = "broken-raises"

    def costs(self, view):
        return view.resources.index("unobtainium")


class Nan(AnywherePolicy):
    name = "broken-nan"

    def costs(self, view):
        return replace(super().costs(view), place=np.full((1, len(view.allocatable)), np.nan))


class NegativeCost(AnywherePolicy):
    name = "broken-negativecost"

    def costs(self, view):
        return replace(super().costs(view), place=np.full((1, 1), -1))


class NegativeCapacity(AnywherePolicy):
    name = "broken-negativecapacity"

    def costs(self, view):
        return replace(super().costs(view), node_limit=np.full(len(view.allocatable), -3))


class WrongShape(AnywherePolicy):
    name = "broken-wrongshape"

    def costs(self, view):
        return replace(super().costs(view), slot=np.zeros((len(view.allocatable) + 1, 1), np.int64))


class Moody(AnywherePolicy):
    """Fails while nothing runs."""

    name = "broken-moody"

    def costs(self, view):
        return super().costs(view) if view.running.any() else None


class Futuristic(AnywherePolicy):
    name = "broken-futuristic"
    api_version = 99
'''

COMPLAINTS = {
    "Raises": r"costs\(\) raised ValueError: tuple.index\(x\): x not in tuple",
    "Nan": "place is float64, not an int64 array",
    "NegativeCost": r"place leaves the range 0 \.\. 1000000: -1 \.\. -1",
    "NegativeCapacity": rf"node_limit leaves the range 0 \.\. {NODE_LIMIT_MAX}: -3 \.\. -3",
    "WrongShape": r"slot has shape \(3, 1\), not \(2, \d+\)",
}


def test_the_template_matches_the_tutorial():
    there = {f"headroom-policy/{path.name}": path.read_text() for path in (DOCS / "policy-template").glob("*.*")}
    assert there == FILES


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> SimpleNamespace:
    """A folder after the steps of the tutorial, without network, with the broken policies installed too.

    `.venv` is our environment, but packages are installed to a separate folder, which `env` puts on the path.
    """
    folder = tmp_path_factory.mktemp("external")
    (folder / ".venv").symlink_to(sys.prefix)
    site = folder / "site"
    env = {**os.environ, "PIP_TARGET": str(site), "PYTHONPATH": str(site), "PIP_NO_INDEX": "1", "PIP_NO_INPUT": "1"}
    entries = "".join(f'broken-{name.lower()} = "broken:{name}"\n' for name in [*COMPLAINTS, "Moody", "Futuristic"])
    project = FILES["headroom-policy/pyproject.toml"].replace("headroom_policy", "broken")
    broken = {
        "broken/broken.py": BROKEN,
        "broken/pyproject.toml": project.replace('headroom = "broken:Headroom"\n', entries).replace(
            "headroom", "broken"
        ),
    }
    for name, text in (FILES | broken).items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text)
    install = COMMANDS[0].splitlines()[0].replace("./headroom-policy", "./broken")
    done = subprocess.run(
        ["bash", "-ec", f"{COMMANDS[0]}\n{install}"], cwd=folder, env=env, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr + done.stdout
    return SimpleNamespace(folder=folder, env=env, site=site, said=done.stdout)


def test_the_tutorial_leads_to_a_listed_conforming_policy_that_passes_its_test(installed):
    assert re.search(r"^headroom +Keeps a part of every node free while it can\.$", installed.said, re.MULTILINE)
    assert "--policy-option keep=FLOAT  [default: 0.2]" in installed.said
    assert "FAILED" not in installed.said
    assert "costs of 5,000 nodes x 256 classes: " in installed.said
    assert "3 passed" in installed.said


def firmament(installed, *words):
    return subprocess.run(
        [sys.executable, "-m", "firmament_py", *words],
        env=installed.env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


@contextmanager
def serving(installed, *words) -> Iterator[flow_pb2_grpc.FlowSchedulerStub]:
    """A separate process that serves with these arguments; it ends with its standard input."""
    port_file = installed.folder / f"port-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "firmament_py", "serve", "--address", "127.0.0.1:0", "--exit-with-parent"]
    with subprocess.Popen(
        [*command, "--port-file", str(port_file), *words], env=installed.env, stdin=subprocess.PIPE
    ) as process:
        try:
            deadline = time.monotonic() + 60
            while not port_file.exists():
                assert process.poll() is None, "it ended"
                assert time.monotonic() < deadline, "it does not serve"
                time.sleep(0.02)
            with grpc.insecure_channel(f"127.0.0.1:{port_file.read_text().strip()}") as channel:
                yield flow_pb2_grpc.FlowSchedulerStub(channel)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(30)


CLUSTER = flow_pb2.Update(
    nodes=[node("a", cpu=100), node("b", cpu=100)], classes=[task_class(1, cpu=85), task_class(2, cpu=1)]
)


def updates(*parts):
    return iter([CLUSTER, *(flow_pb2.Update(tasks=part) for part in parts), flow_pb2.Update(complete=True)])


def test_an_external_policy_selected_by_flag_decides_rounds(installed):
    """a runs one task that leaves less than a fifth free, b three small ones: headroom prefers b, and load-spreading,
    which counts tasks, would prefer a."""
    there = (tasks([1], 1, on="a"), tasks([2, 3, 4], 2, on="b"), tasks([5], 2))
    for policy, expected in (("headroom", "id-b"), ("load-spreading", "id-a")):
        with serving(installed, "--policy", policy) as flow:
            assert flow.Hello(flow_pb2.HelloRequest()).policy == policy
            epoch = flow.Resync(updates(*there)).epoch
            reply = flow.Round(flow_pb2.RoundRequest(epoch=epoch, now_us=NOW_US))
        assert (reply.stats.policy, reply.stats.fallback) == (policy, "")
        assert placed(reply) == {5: expected}


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["headroom", "--policy-option", "keep=7"], "policy headroom: option keep is 7.0; give a share from 0 to 1"),
        (["headroom", "--policy-option", "kept=7"], "policy headroom has no option 'kept'; it has: keep"),
        (["broken-futuristic"], "policy broken-futuristic needs version 99 of the policy interface"),
    ],
)
def test_errors_of_an_external_policy_are_reported_before_serving(installed, words, reported):
    done = firmament(installed, "serve", "--policy", *words)
    assert done.returncode == 2
    assert reported in " ".join(done.stderr.split())


@pytest.mark.parametrize("name", COMPLAINTS)
def test_a_failing_policy_is_named_and_tasks_are_still_placed(installed, name):
    with serving(installed, "--policy", f"broken-{name.lower()}") as flow:
        epoch = flow.Resync(updates(tasks(range(1, 21), 2))).epoch
        first = flow.Round(flow_pb2.RoundRequest(epoch=epoch, now_us=NOW_US))
        flow.Apply(flow_pb2.Update(epoch=epoch, tasks=tasks(range(21, 31), 2)))
        second = flow.Round(flow_pb2.RoundRequest(epoch=epoch, now_us=NOW_US, acknowledged=first.round))
    assert set(placed(first)) == set(range(1, 21))
    assert set(placed(second)) == set(range(21, 31))
    for reply in (first, second):
        assert reply.stats.dropped == 0
        assert re.fullmatch(f"policy broken-{name.lower()}: {COMPLAINTS[name]}", reply.stats.fallback)
    done = firmament(installed, "check-policy", f"broken-{name.lower()}", "--json")
    assert done.returncode == 1
    assert [finding["rule"] for finding in json.loads(done.stdout)["findings"]] == ["contract"]


async def test_pods_are_bound_under_a_failing_policy_and_the_failure_is_reported(
    installed, tmp_path, monkeypatch, caplog
):
    monkeypatch.setenv("PYTHONPATH", str(installed.site))
    async with world_of(World, tmp_path) as world:
        with caplog.at_level(logging.INFO):
            bridge = await world.bridge(policy="broken-moody")
            world.cluster.add_pods(10, template(), prefix="first-")
            await world.until(lambda: len(world.bound()) == 10)
            world.cluster.add_pods(10, template(), prefix="second-")
            await world.until(lambda: len(world.bound()) == 20)
            await world.until(lambda: "works again" in caplog.text)
            status = await bridge.status()
        world.check()
    assert bridge.metrics.fallbacks.labels("broken-moody")._value.get() > 0
    assert "policy broken-moody: costs() returned NoneType, not Costs" in caplog.text
    assert status["last_round"]["fallback"] == ""
