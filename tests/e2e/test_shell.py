"""What people meet at the shell: mistakes get one clear line and an exit code, questions get answers."""

from __future__ import annotations

import json
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e.api import ApiError, Json
from tests.e2e.backends import Backend, free_ports
from tests.e2e.conftest import REAL, SYNTHETIC
from tests.e2e.objects import container, node, pod
from tests.e2e.processes import FIRMAMENT, POSEIDON, Process, Scheduler, environment, run

Schedule = Callable[..., Scheduler]


def refuse(*arguments: str, code: int) -> str:
    """Runs `poseidon run` with a mistake; returns the one line that it says about it."""
    done = run(*POSEIDON, "run", "--no-leader-elect", *arguments)
    assert done.returncode == code, done.stderr
    said = [line for line in done.stderr.splitlines() if line.lower().startswith("error: ")]
    assert len(said) == 1, done.stderr
    assert "Traceback" not in done.stderr
    return said[0]


def written(path: Path, content: str | None) -> str:
    """None: no such file."""
    if content is not None:
        path.write_text(content)
    return str(path)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("{{{ nonsense", "cannot use the kubeconfig", id="not YAML"),
        pytest.param("- a list", "cannot use the kubeconfig", id="not a mapping"),
        pytest.param("", "cannot use the kubeconfig", id="empty"),
        pytest.param("apiVersion: v1\nkind: Config\n", "cannot use the kubeconfig", id="no context"),
        pytest.param(None, "there is no kubeconfig", id="missing"),
    ],
)
def test_kubeconfigs_that_cannot_be_used(tmp_path: Path, content: str | None, text: str) -> None:
    path = written(tmp_path / "kubeconfig", content)
    said = refuse("--kubeconfig", path, "--health-port", "-1", code=2)
    assert text in said
    assert path in said


def test_neither_a_kubeconfig_nor_a_cluster_around() -> None:
    assert "--kubeconfig" in refuse("--health-port", "-1", code=2)


def kubeconfig(path: Path, url: str, token: str = "") -> str:
    config: Json = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": token}}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "c",
    }
    path.write_text(json.dumps(config))
    return str(path)


def test_an_api_server_that_is_not_there(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    config = kubeconfig(tmp_path / "kubeconfig", f"http://127.0.0.1:{port}")
    said = refuse("--kubeconfig", config, "--health-port", "-1", "--startup-timeout", "5", code=1)
    assert f"cannot reach the API server at http://127.0.0.1:{port}" in said
    assert "is it running" in said


@SYNTHETIC
def test_an_unknown_context(synthetic: Backend) -> None:
    said = refuse("--kubeconfig", str(synthetic.kubeconfig), "--context", "nowhere", "--health-port", "-1", code=2)
    assert "nowhere" in said


@REAL
def test_a_token_that_is_not_accepted(backend: Backend, tmp_path: Path) -> None:
    text = backend.kubeconfig.read_text().replace("token: e2e", "token: wrong")
    path = tmp_path / "kubeconfig"
    path.write_text(text)
    said = refuse("--kubeconfig", str(path), "--health-port", "-1", "--startup-timeout", "10", code=1)
    assert "rejected our credentials (401): check the token" in said


@SYNTHETIC
@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        pytest.param(("--policy", "guess"), 2, "there is no policy 'guess'; there are: bin-packing, ", id="policy"),
        pytest.param(("--policy-option", "novalue"), 2, "K=V", id="form of policy option"),
        pytest.param(("--policy-option", "no-such=1"), 2, "no-such", id="policy option"),
        pytest.param(("--scheduler-name", ""), 2, "scheduler-name", id="empty name"),
        pytest.param(("--lease-duration", "1", "--renew-deadline", "5"), 2, "lease-duration", id="lease times"),
        pytest.param(("--bind-concurrency", "0"), 2, "bind-concurrency", id="concurrency"),
        pytest.param(("--health-port", "70000"), 2, "health-port", id="port"),
        pytest.param(("--log-level", "loud"), 2, "loud", id="choice"),
        pytest.param(
            ("--firmament-address", "127.0.0.1:9", "--policy", "load-spreading"), 2, "policy", id="whose policy"
        ),
    ],
)
def test_flags_that_make_no_sense(synthetic: Backend, arguments: tuple[str, ...], code: int, text: str) -> None:
    default = () if "--health-port" in arguments else ("--health-port", "-1")
    assert text in refuse("--kubeconfig", str(synthetic.kubeconfig), *default, *arguments, code=code)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("schedulername: x", "did you mean 'scheduler-name'", id="unknown key with a neighbour"),
        pytest.param("frobnicate: 3", "unknown key 'frobnicate'", id="unknown key"),
        pytest.param("bind-concurrency: many", "bind-concurrency in", id="wrong type"),
        pytest.param("][", "is not YAML", id="not YAML"),
        pytest.param("- 1", ", not a mapping", id="list"),
        pytest.param(None, "cannot read the configuration", id="missing"),
    ],
)
def test_configuration_files_that_make_no_sense(tmp_path: Path, content: str | None, text: str) -> None:
    path = written(tmp_path / "poseidon.yaml", content)
    said = refuse("--config", path, code=2)
    assert text in said
    assert path in said


@SYNTHETIC
def test_a_health_port_that_is_taken(synthetic: Backend) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = refuse("--kubeconfig", str(synthetic.kubeconfig), "--health-port", str(port), code=2)
    assert f"cannot serve health on 127.0.0.1:{port}" in said
    assert "--health-port" in said


@SYNTHETIC
def test_a_flow_service_that_is_not_there(synthetic: Backend) -> None:
    (port,) = free_ports(1)
    config = ("--kubeconfig", str(synthetic.kubeconfig), "--health-port", "-1", "--startup-timeout", "5")
    said = refuse(*config, "--firmament-address", f"127.0.0.1:{port}", code=1)
    assert f"no flow service at 127.0.0.1:{port}" in said
    assert "firmament serve" in said


@SYNTHETIC
def test_flags_win_over_the_configuration_file(synthetic: Backend, schedule: Schedule, tmp_path: Path) -> None:
    path = tmp_path / "poseidon.yaml"
    path.write_text("scheduler-name: [from-file]\nlog-format: json\nlog_level: debug\n")
    synthetic.create(node("n"))
    schedule("--config", str(path), "--log-format", "text")
    synthetic.create(pod("ours", scheduler="from-file"), pod("theirs"))
    synthetic.until_bound(1, "ours")
    assert set(synthetic.bound()) == {"ours"}


# -- nonsense in the cluster -----------------------------------------------------------------------------------------


def test_nodes_without_allocatable_are_counted_and_named(backend: Backend, schedule: Schedule) -> None:
    bare = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "bare"}}
    backend.create(bare, node("good"))
    scheduler = schedule()
    backend.create(*(pod(f"p{at}") for at in range(5)))
    assert set(backend.until_bound(5).values()) == {"good"}
    scheduler.until_says("skipping node bare: status.allocatable")
    assert scheduler.metric("poseidon_nodes_without_allocatable_total") == 1
    backend.resize_node("bare", cpu="4", memory="4Gi", pods="10")
    backend.create(pod("late"))
    backend.until_bound(6)


NONSENSE = {
    "annotation": pod("odd", metadata={"annotations": {"scheduling.k8s.io/group-pod-num": "many", "x": "{"}}),
    "negative request": pod("odd", containers=[container(cpu="-1")]),
    "request without a number": pod("odd", containers=[container(cpu="lots")]),
    "huge request": pod("odd", containers=[container(memory="9999999999999999Ei")]),
    "unknown operator": pod(
        "odd",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Near", "values": ["b"]}]}]
                }
            }
        },
    ),
    "Gt of no number": pod(
        "odd",
        affinity={
            "nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {
                    "nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["b"]}]}]
                }
            }
        },
    ),
    "toleration with an unknown operator": pod("odd", tolerations=[{"key": "a", "operator": "Maybe"}]),
}


@pytest.mark.parametrize("odd", [pytest.param(item, id=name) for name, item in NONSENSE.items()])
def test_pods_that_make_no_sense_harm_nobody(backend: Backend, schedule: Schedule, odd: Json) -> None:
    backend.create(node("n"))
    scheduler = schedule()
    stored = True
    try:
        backend.create(odd)
    except ApiError as error:
        if error.code not in (400, 422):
            raise
        stored = False
    backend.create(*(pod(f"p{at}") for at in range(3)))
    backend.until_bound(3, "p")
    assert scheduler.get("/livez")[0] == 200
    if stored:  # it is placed, or somebody says why not
        code, body = scheduler.get("/explain?pod=default/odd")
        assert code == 200, body
        assert json.loads(body)["state"] in ("bound", "being bound", "waits for a node", "invalid")


# -- questions -------------------------------------------------------------------------------------------------------


def test_status_and_explain(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("a", cpu="2"), node("b", cpu="4"))
    scheduler = schedule()
    backend.create(pod("fits", cpu="1"), pod("large", cpu="64"))
    backend.until_bound(1)
    assert backend.until_unschedulable("large") == "0/2 nodes are available: 2 Insufficient cpu."
    scheduler.until_says("round placed=")
    ask = [*POSEIDON, "explain", "--address", scheduler.address]
    told = run(*ask, "default/large").stdout
    for text in ("default/large", "waits for a node", "2 Insufficient cpu", "cpu 64", "lacks"):
        assert text in told
    found = json.loads(run(*ask, "large", "--json").stdout)
    # what it would take: b lacks the least, 60 cores more than it has left
    assert found["nearest"][0]["node"] == "b"
    assert found["nearest"][0]["lacks"]["cpu"] in (60_000, 61_000)  # milli; depends on where `fits` went
    status = run(*POSEIDON, "status", "--address", scheduler.address)
    assert status.returncode == 0
    for text in ("leads", "load-spreading", "2 nodes", "cpu", "memory", "round"):
        assert text in status.stdout
    body = json.loads(run(*POSEIDON, "status", "--json", "--address", scheduler.address).stdout)
    assert (body["nodes"], body["pods"]["waiting"], body["bound"]) == (2, 1, 1)
    missing = run(*ask, "default/nobody")
    assert (missing.returncode, missing.stderr) == (1, "error: the scheduler knows no pod default/nobody\n")


def test_questions_to_nobody() -> None:
    (port,) = free_ports(1)
    for command in (["status"], ["explain", "default/p"]):
        done = run(*POSEIDON, *command, "--address", f"127.0.0.1:{port}")
        assert done.returncode == 1
        assert done.stderr.startswith(f"error: no scheduler at 127.0.0.1:{port}")
        assert len(done.stderr.splitlines()) == 1


def test_policies() -> None:
    done = run(*POSEIDON, "policies")
    assert done.returncode == 0
    assert "load-spreading" in done.stdout
    assert "load-spreading" in [each["name"] for each in json.loads(run(*POSEIDON, "policies", "--json").stdout)]


def test_metrics(backend: Backend, schedule: Schedule) -> None:
    backend.create(node("a", cpu="1"))
    scheduler = schedule()
    backend.create(*(pod(f"p{at}", cpu="500m") for at in range(3)))
    backend.until_bound(2)
    for name in set(backend.bound()):
        backend.until_event("Scheduled", name)
    code, text = scheduler.get("/metrics")
    assert code == 200
    assert 'poseidon_pending_pods{queue="active"} 1.0' in text
    assert 'poseidon_schedule_attempts_total{result="scheduled"} 2.0' in text
    assert scheduler.metric("poseidon_pods") == 3
    assert scheduler.metric("poseidon_nodes") == 1
    assert scheduler.metric("poseidon_pod_scheduling_sli_duration_seconds_count") == 2
    assert scheduler.metric("poseidon_placements_dropped_total") == 0
    assert scheduler.metric("poseidon_leader_election_master_status") == 1


def test_kubectl_describe_shows_what_happened(backend: Backend, schedule: Schedule) -> None:
    kubectl = shutil.which("kubectl")
    if kubectl is None:
        pytest.skip("kubectl is not installed")
    backend.create(node("a", cpu="1"))
    schedule()
    backend.create(pod("p", cpu="1"), pod("q", cpu="2"))
    backend.until_event("Scheduled", "p")
    backend.until_event("FailedScheduling", "q")
    for name, words in (
        ("p", ("Normal", "Scheduled", "poseidon", "Successfully assigned default/p to a", "Node:")),
        ("q", ("Warning", "FailedScheduling", "poseidon", "0/1 nodes are available: 1 Insufficient cpu.")),
    ):
        command = [kubectl, "--kubeconfig", str(backend.kubeconfig), "describe", "pod", name]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True, env=environment())
        for word in words:
            assert word in done.stdout, done.stdout


@SYNTHETIC
def test_stopping_while_it_still_starts(synthetic: Backend, schedule: Schedule) -> None:
    synthetic.api("POST", "/_faults", {"rules": [{"verbs": ["get", "list"], "rate_503": 1.0}]})
    scheduler = schedule(ready=False)
    scheduler.until_says("health and metrics on")
    assert scheduler.end(signal.SIGTERM) == 0


def test_the_services_end_when_they_are_asked_to(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    cluster = Process([*POSEIDON, "cluster", "--nodes=1", "--port=0", f"--kubeconfig-out={config}"])
    service = Process([*FIRMAMENT, "serve", "--address", "127.0.0.1:0"])
    cluster.until_says("synthetic cluster")
    service.until_says("serving on port")
    assert (cluster.end(), service.end()) == (0, 0)
