"""`poseidon jobs run --hooks`: an endpoint gets every transition, also of a controller that is killed, and bills it."""

from __future__ import annotations

import json
import signal
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.api import PATIENCE, View
from tests.e2e.backends import PODS, Backend
from tests.e2e.jobs.manifests import Start, job, task, until_phase, until_pods
from tests.e2e.processes import POSEIDON, run
from tests.e2e.test_restarts import LEASE
from tests.poseidon_py.hooks.test_billing import load

pytestmark = pytest.mark.e2e

KEY = b"0123456789abcdef0123456789abcdef"
billing = load()


class BillingEndpoint:
    """Verifies and stores messages as the example does, and keeps them; `closed`: it answers 503."""

    def __init__(self) -> None:
        self.ledger = billing.Ledger(":memory:")
        self.messages: list[dict[str, Any]] = []
        self.forged = 0
        self.closed = False
        self.refused = 0
        self.changed = threading.Condition()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(endpoint.take(self.headers.get("Poseidon-Signature", ""), body))
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/events"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def take(self, signature: str, body: bytes) -> int:
        with self.changed:
            self.changed.notify_all()
            if self.closed:
                self.refused += 1
                return 503
            if not billing.is_genuine(signature, body, [KEY], time.time()):
                self.forged += 1
                return 401
            message = json.loads(body)
            self.ledger.add(message)
            self.messages.append(message)
            return 200

    def seen(self, machine: str) -> list[tuple[str, str, str]]:
        """Name and states of the transitions of a machine, each once, in the order of their first delivery."""
        found = {each["deliveryID"]: each for each in self.messages if each["machine"] == machine}
        return [(each["name"], each["previousState"], each["currentState"]) for each in found.values()]

    def until_seen(self, *expected: tuple[str, str, str]) -> None:
        """Waits for transitions: machine, name and new state."""
        with self.changed:
            there = self.changed.wait_for(
                lambda: {(m["machine"], m["name"], m["currentState"]) for m in self.messages} >= set(expected), PATIENCE
            )
        assert there, f"not delivered: {set(expected)} in {self.messages}"

    def until_refused(self) -> None:
        with self.changed:
            assert self.changed.wait_for(lambda: self.refused, PATIENCE)

    def close(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()
        self.ledger.close()


@pytest.fixture
def endpoint() -> Iterator[BillingEndpoint]:
    found = BillingEndpoint()
    yield found
    found.close()


@pytest.fixture
def hooks_file(endpoint: BillingEndpoint, tmp_path: Path) -> Path:
    (tmp_path / "billing.key").write_bytes(KEY)
    hook = {
        "name": "billing",
        "url": endpoint.url,
        "on": [
            {"machine": "job", "after": ["Running", "Completed"]},
            {"machine": "replica", "after": "Running"},
            {"machine": "replica", "before": "Running"},
        ],
        "secret": {"file": "billing.key"},
        "retry": {"attempts": 1000, "first": 0.05, "longest": 0.2},
    }
    path = tmp_path / "hooks.yaml"
    path.write_text(yaml.safe_dump({"namespace": "default", "hooks": [hook]}))
    return path


def state(backend: Backend, phase: str, *names: str, ended: str = "") -> None:
    """Writes the status of pods as a kubelet does: they start at midnight."""
    began = "2026-01-01T00:00:00Z"
    now = {"terminated": {"exitCode": 0, "startedAt": began, "finishedAt": ended}} if ended else None
    for name in names:
        container = {
            "name": backend.api("GET", f"{PODS}/{name}")["spec"]["containers"][0]["name"],
            "image": "i", "imageID": "i", "restartCount": 0, "ready": not ended,
            "state": now or {"running": {"startedAt": began}},
        }  # fmt: skip
        status = {"phase": phase, "containerStatuses": [container]}
        backend.patch(f"{PODS}/{name}/status", {"status": status})


NAMES = ("j-w-0", "j-w-1")
RUNNING = [("replica", name, "Running") for name in NAMES] + [("job", "j", "Running")]
COMPLETED = [("replica", name, "Succeeded") for name in NAMES] + [("job", "j", "Completed")]


def check(endpoint: BillingEndpoint) -> None:
    """Everything has come, in the order of the job, and is billed exactly."""
    assert endpoint.forged == 0
    assert endpoint.seen("job") == [("j", "Pending", "Running"), ("j", "Running", "Completed")]
    for name in NAMES:
        mine = [each for each in endpoint.seen("replica") if each[0] == name]
        assert mine == [(name, "Pending", "Running"), (name, "Running", "Succeeded")]
    first = {each["deliveryID"]: each["sequence"] for each in reversed(endpoint.messages)}
    of_job = [each for each in endpoint.messages if each["machine"] == "job"]
    ran = max(first[e["deliveryID"]] for e in endpoint.messages if e["currentState"] == "Succeeded")
    assert ran < first[of_job[-1]["deliveryID"]]
    assert {each["userID"] for each in endpoint.messages} == {"anna"}
    # two pods of 100 millicores for an hour
    (usage,) = endpoint.ledger.usage(0.0)["users"].values()
    assert (usage["seconds"], usage["cpu"]) == (7200.0, pytest.approx(720.0))
    assert endpoint.ledger.usage(0.0)["incomplete"] == []


def test_running_and_completed_are_delivered(
    backend: Backend, jobs: View, start: Start, endpoint: BillingEndpoint, hooks_file: Path
) -> None:
    start("--hooks", str(hooks_file))
    backend.create(job("j", annotations={"poseidon.io/user": "anna"}))
    until_pods(backend, *NAMES)
    state(backend, "Running", *NAMES)
    endpoint.until_seen(*RUNNING)
    state(backend, "Succeeded", *NAMES, ended="2026-01-01T01:00:00Z")
    endpoint.until_seen(*COMPLETED)
    check(endpoint)
    jobs.until(lambda items: "poseidon.io/noted" not in json.dumps(items[0]["status"]), "the end of the notes")


@pytest.mark.parametrize("moment", ["stored", "unknown"])
def test_nothing_is_lost_when_the_controller_is_killed(
    backend: Backend, jobs: View, start: Start, endpoint: BillingEndpoint, hooks_file: Path, moment: str
) -> None:
    first = start("--hooks", str(hooks_file))
    backend.create(job("j", annotations={"poseidon.io/user": "anna"}))
    until_pods(backend, *NAMES)
    endpoint.closed = True
    state(backend, "Running", *NAMES)
    until_phase(jobs, "j", "Running", running=2)
    if moment == "stored":
        endpoint.until_refused()
        shown = run(*POSEIDON, "hooks", "--kubeconfig", str(backend.kubeconfig), "--namespace", "default", "--json")
        (store,) = json.loads(shown.stdout)
        assert store["store"] == "jobs"
        assert store["pending"]
    first.end(signal.SIGKILL)
    state(backend, "Succeeded", *NAMES, ended="2026-01-01T01:00:00Z")
    second = start("--hooks", str(hooks_file))
    until_phase(jobs, "j", "Completed", succeeded=2)
    second.end(signal.SIGKILL)  # right after the write of the status
    endpoint.closed = False
    start("--hooks", str(hooks_file))
    endpoint.until_seen(*RUNNING, *COMPLETED)
    check(endpoint)


def test_the_other_replica_delivers_what_it_has_seen_leave(
    backend: Backend, jobs: View, start: Start, endpoint: BillingEndpoint, hooks_file: Path
) -> None:
    lease = (*LEASE, "--lease-name", "poseidon-jobs", "--hooks", str(hooks_file))
    leader = start(*lease)
    leader.until_says("leading: ")
    standby = start(*lease)
    standby.until_says("the leader is ")
    backend.create(job("j", task("w", 2), annotations={"poseidon.io/user": "anna"}))
    until_pods(backend, *NAMES)
    state(backend, "Running", *NAMES)
    endpoint.until_seen(*RUNNING)
    leader.end(signal.SIGKILL)
    backend.delete(PODS, "j-w-0")
    endpoint.until_seen(("replica", "j-w-0", "Terminating"))
    (message,) = [each for each in endpoint.messages if each["currentState"] == "Terminating"]
    assert message["details"]["since"] == "2026-01-01T00:00:00.000000Z"
    assert message["details"]["requests.cpu"] == "0.1"
    standby.until_says("leading: ")
