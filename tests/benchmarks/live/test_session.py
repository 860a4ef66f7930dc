"""A live benchmark counts only its own pods, and removes all objects from a server, if need be in several requests."""

import asyncio
import json
import signal
import time
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from click.testing import CliRunner

from benchmarks.__main__ import cli
from benchmarks.demo.evidence import listed
from benchmarks.demo.progress import Seen
from benchmarks.harness.runner import CannotMeasureError
from benchmarks.live.processes import child, wait_for_file
from benchmarks.live.session import LABEL, Pods, remove
from benchmarks.suites import end_to_end
from poseidon_py.kube import credentials
from poseidon_py.kube.client import Kube, LostAnswerError, api_error


class Server:
    """Deletes some objects per request, and then fails; the request that deletes the last of a kind is answered."""

    def __init__(self, pods, nodes, at_once, failure):
        self.left = {"pods": pods, "nodes": nodes}
        self._at_once, self._failure = at_once, failure
        self.deletions = 0

    async def call(self, verb, path, body=b"", timeout=30.0):
        kind = path.partition("?")[0].rpartition("/")[2]
        assert "labelSelector=poseidon-bench%3Dtrue" in path, "nothing of anybody else"
        if verb == "GET":
            return orjson.dumps({"items": [{}] * min(self.left[kind], 1)})
        assert verb == "DELETE"
        self.deletions += 1
        self.left[kind] = max(self.left[kind] - self._at_once, 0)
        if self.left[kind]:
            raise self._failure
        return b"{}"


@pytest.mark.parametrize("failure", [LostAnswerError("lost"), api_error(504, b"", None)], ids=["lost", "504"])
def test_objects_that_remain_after_a_timeout_are_deleted_eventually(failure):
    server: Any = Server(pods=10, nodes=3, at_once=4, failure=failure)
    asyncio.run(remove(server))
    assert server.left == {"pods": 0, "nodes": 0}
    assert server.deletions == 3 + 1


def test_requests_to_a_server_that_deletes_nothing_end():
    server: Any = Server(pods=1, nodes=0, at_once=0, failure=LostAnswerError("lost"))
    asyncio.run(remove(server, ["pods"]))
    assert server.deletions == 20


class Bound:
    """A synthetic cluster that has bound `before` other pods. At each poll of its counts it binds `others` more,
    and one of the created pods, up to `maximum`."""

    def __init__(self, before=0, others=0, maximum=1000):
        self.entries = [self._bind(f"old-{n}") for n in range(before)]
        self._others, self._maximum = others, maximum
        self.waiting: list[str] = []
        self.created = self.bound = self.audits = 0

    def _bind(self, uid):
        return {"what": "bind", "uid": uid, "time": 1.0}

    async def page(self, path, parameters):
        return await self.call("GET", path)

    async def call(self, verb, path, body=b"", timeout=30.0):
        if verb == "POST":
            uid = f"own-{self.created}"
            self.created += 1
            self.waiting.append(uid)
            return orjson.dumps({"metadata": {"uid": uid}})
        if path == "/_audit":
            self.audits += 1
            return orjson.dumps({"entries": self.entries})
        assert path == "/_stats"
        if self.created:
            self.entries += [self._bind(f"other-{len(self.entries)}") for _ in range(self._others)]
            if self.waiting and self.bound < self._maximum:
                self.entries.append(self._bind(self.waiting.pop()))
                self.bound += 1
        return orjson.dumps({"audit": {"bind": len(self.entries)}})


def waited(server: Any, count=4, patience=60.0):
    """The pods with bind times at the end of the wait."""

    async def wait():
        pods = Pods(server, "mine", nodes=1, pods=count, seed=0, has_audit=True)
        await pods.begin()
        await pods.create(count)
        return await pods.wait_for(count, patience)

    return sorted(asyncio.run(wait()))


OWN = [f"own-{n}" for n in range(4)]


def test_earlier_binds_do_not_count():
    server = Bound(before=100)
    assert waited(server) == OWN
    assert server.audits == 1, "nothing but the counts is asked for while pods are bound"


def test_concurrent_binds_of_other_pods_do_not_count():
    assert waited(Bound(before=3, others=2)) == OWN


def test_pods_of_others_that_are_watched_do_not_count():
    async def wait():
        server: Any = Bound()
        pods = Pods(server, "mine", nodes=1, pods=2, seed=0, has_audit=False)
        await pods.create(2)
        seen = pods._progress
        seen.pods = {f"other-{n}": Seen("", 0.0, bound_at=1.0) for n in range(5)}
        seen.bound = 5

        def bind() -> None:
            if left:
                seen.pods[left.pop()] = Seen("", 0.0, bound_at=2.0)
                seen.bound += 1

        left = ["own-0", "own-1"]
        return await pods.wait_for(2, 60.0, bind)

    assert sorted(asyncio.run(wait())) == ["own-0", "own-1"]


def test_unbound_pods_are_reported_despite_binds_of_others():
    with pytest.raises(CannotMeasureError, match="only 3 of 4 pods were bound, and no more within 0 s"):
        waited(Bound(before=50, others=1, maximum=3), patience=0.1)


def test_a_check_counts_the_pods_that_the_figures_are_of(monkeypatch):
    monkeypatch.setattr(end_to_end, "_SETTLE_SECONDS", 0.0)
    run = end_to_end._Run(1, 10, "burst", None, "basic", 0, None, "somebody")
    nothing: Any = None
    for measured, ok in ((10, True), (9, False)):
        (check,) = asyncio.run(end_to_end._checks(nothing, measured, run))
        assert (check.ok, check.detail) == (ok, f"{measured} of 10")


@contextmanager
def synthetic(folder):
    """The kubeconfig of an existing cluster of 5 nodes."""
    kubeconfig, log = folder / "kubeconfig", folder / "log"
    arguments = ["poseidon_py", "cluster", "--nodes", "5", "--port", "0", "--kubeconfig-out", str(kubeconfig)]
    with child(arguments, log) as server:
        while not wait_for_file(server, kubeconfig, log, 30.0):
            time.sleep(0.02)
        yield kubeconfig


@pytest.mark.e2e
@pytest.mark.slow
def test_each_sample_on_an_existing_server_has_all_pods(tmp_path):
    out = tmp_path / "r.json"
    with synthetic(tmp_path) as kubeconfig:
        arguments = ["run", "end-to-end", "--case", "beforehand", "--nodes", "5", "--pods", "40", "--repeat", "2"]
        done = CliRunner().invoke(cli, [*arguments, "--kubeconfig", str(kubeconfig), "--json", str(out)])
        assert done.exit_code == 0, done.output
    (case,) = json.loads(out.read_text())["cases"]
    assert case["failed"] == []
    # all pods are in the timeline of the last sample, though the server had bound three times as many before
    (line,) = [line for line in case["series"] if line["kind"] == "timeline"]
    assert line["y"][-1] == len(line["y"]) == 40


@pytest.mark.e2e
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=["SIGTERM", "SIGINT"])
def test_a_signal_removes_all_objects_from_the_server(tmp_path, number):
    """Its pods name a scheduler that does not run, so that it waits for them; they are few, so that removal is fast."""
    log = tmp_path / "bench"

    def last_words():
        return "\n".join(log.read_text(errors="replace").splitlines()[-5:])

    async def mine(kubeconfig, *kinds):
        kube = Kube(await credentials.load(kubeconfig, None), 4)
        await kube.start()
        try:
            found = [await listed(kube, f"/api/v1/{kind}") for kind in kinds]
        finally:
            await kube.close()
        return [one["metadata"]["name"] for some in found for one in some if LABEL in one["metadata"].get("labels", {})]

    with synthetic(tmp_path) as kubeconfig:
        arguments = ["run", "end-to-end", "--case", "rate", "--nodes", "5", "--pods", "50", "--against", "nobody"]
        with child(["benchmarks", *arguments, "--kubeconfig", str(kubeconfig)], log) as bench:
            while not asyncio.run(mine(kubeconfig, "pods")):
                assert bench.poll() is None, last_words()
                time.sleep(0.1)
            bench.send_signal(number)
            assert bench.wait() == 130, last_words()
        assert asyncio.run(mine(kubeconfig, "pods", "nodes")) == []
