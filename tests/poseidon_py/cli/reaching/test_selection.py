"""Which scheduler answers a command: an address that is given, the leader of the cluster, the one on the local port."""

import json

import pytest

from poseidon_py.cli.main import cli
from poseidon_py.kube.leader.leader_record import LeaderRecord
from tests.command_line import invoke

NOWHERE = "127.0.0.1:9"


@pytest.fixture(autouse=True)
def local_port(monkeypatch, tmp_path):
    """Nobody answers there, unless a test says so. There is no kubeconfig but those of the tests."""
    monkeypatch.setattr("poseidon_py.cli.reaching.selection.LOCAL", NOWHERE)
    monkeypatch.setattr("poseidon_py.kube.leader.leader_search._DOUBT_SECONDS", 0.0)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


def status(*arguments):
    return invoke(cli, "status", "--json", *arguments)


def in_pod(name="poseidon-0", port=10271):
    return LeaderRecord("id", version="0.1.0", host=name, pod=f"kube-system/{name}", health=f"0.0.0.0:{port}")


def on_shell(port, host="here"):
    return LeaderRecord("host_1", version="0.1.0", host=host, health=f"127.0.0.1:{port}")


def test_the_leader_in_a_pod_answers_through_the_api_server(world, stub, kubeconfig):
    """As a peer on loopback, with a name of loopback: what its health port wants to see."""
    world.lease(in_pod())
    world.pod("poseidon-0", f"10271={stub.port}")
    result = status("--kubeconfig", kubeconfig())
    assert (result.exit_code, json.loads(result.stdout), result.stderr) == (0, {"path": "/status"}, "")
    assert stub.hosts == ["127.0.0.1:10271"]


def test_rights_that_lack_are_named(world, stub, kubeconfig):
    """A viewer needs the lease, and port-forward: get for the WebSocket, and create besides since 1.35."""
    world.lease(in_pod())
    world.pod("poseidon-0", f"10271={stub.port}")
    file = kubeconfig(world.token("viewer"))
    result = status("--kubeconfig", file)
    assert result.exit_code == 1
    assert "it takes get on leases (docs/rbac.md)" in result.stderr

    def granted(name, *rules):
        metadata = {"name": name}
        api = "rbac.authorization.k8s.io"
        role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)}
        reference = {"apiGroup": api, "kind": "Role", "name": name}
        subject = {"kind": "ServiceAccount", "name": "viewer", "namespace": "kube-system"}
        world.create(role)
        world.create({**role, "kind": "RoleBinding", "roleRef": reference, "subjects": [subject]})

    granted("lease", {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["get"]})
    granted("forward", {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get"]})
    result = status("--kubeconfig", file)
    assert result.exit_code == 1
    assert 'cannot create resource "pods/portforward"' in result.stderr
    assert "it takes get and create on pods/portforward in namespace kube-system" in result.stderr
    granted("both", {"apiGroups": [""], "resources": ["pods/portforward"], "verbs": ["get", "create"]})
    assert status("--kubeconfig", file).exit_code == 0


def test_a_leader_that_is_a_process_answers_on_its_own_machine(world, stub, kubeconfig):
    world.lease(on_shell(stub.port))
    result = status("--kubeconfig", kubeconfig())
    assert (result.exit_code, json.loads(result.stdout), result.stderr) == (0, {"path": "/status"}, "")


def test_whoever_has_the_leaders_port_here_is_not_the_leader(world, stub, kubeconfig):
    """The leader is on another machine, where it has the same port."""
    world.lease(on_shell(stub.port, host="there"))
    stub.identity["identity"] = "host_2"
    result = status("--kubeconfig", kubeconfig())
    assert result.exit_code == 1
    assert f"the leader host_1 is a process on there, and answers at 127.0.0.1:{stub.port} of its own" in result.stderr
    assert "run the command there" in result.stderr


@pytest.mark.parametrize(
    ("lease", "why"),
    [
        pytest.param(None, "there is no lease kube-system/poseidon, and there is no lease kube-system/k", id="none"),
        pytest.param({"holderIdentity": None}, "no process holds lease kube-system/poseidon", id="released"),
        pytest.param({"age": 60}, "id has not renewed lease kube-system/poseidon since ", id="expired"),
        pytest.param(
            {"holderIdentity": "kube"}, "kube holds lease kube-system/poseidon and does not say there", id="of-another"
        ),
    ],
)
def test_without_a_leader_the_local_port_answers_and_says_who_that_is(world, stub, kubeconfig, monkeypatch, lease, why):
    if lease is not None:
        world.lease(in_pod(), **lease)
    file = kubeconfig()
    result = status("--kubeconfig", file)
    assert result.exit_code == 1
    assert why in result.stderr
    assert f"nor does a scheduler answer at {NOWHERE}. Start one (`poseidon run`" in result.stderr
    monkeypatch.setattr("poseidon_py.cli.reaching.selection.LOCAL", f"127.0.0.1:{stub.port}")
    stub.identity["server"] = world.cluster.url
    result = status("--kubeconfig", file)
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"path": "/status"})
    (line,) = result.stderr.splitlines()
    who = f"poseidon 0.1.0, scheduler of poseidon for the API server {world.cluster.url}, answers at "
    assert line.startswith(f"{who}127.0.0.1:{stub.port}, because ")
    assert why in line
    stub.identity["server"] = "https://elsewhere:6443"
    result = status("--kubeconfig", file)
    assert result.exit_code == 1
    assert f"serves the API server https://elsewhere:6443, not {world.cluster.url}" in result.stderr


def test_the_lease_of_kube_scheduler_is_read_too(world, stub, kubeconfig):
    """A release in its place has that one by default; a lease of ours that nobody renews is passed over."""
    world.lease(None, age=3600)
    world.lease(in_pod(), name="kube-scheduler")
    world.pod("poseidon-0", f"10271={stub.port}")
    assert status("--kubeconfig", kubeconfig()).exit_code == 0


def test_a_pod_that_does_not_answer(world, kubeconfig):
    """Gone, or nothing listens at its port: the API server's words, and what to try."""
    world.lease(in_pod())
    result = status("--kubeconfig", kubeconfig())
    assert result.exit_code == 1
    assert 'pods "poseidon-0" not found; the leader has ended just now' in result.stderr
    world.pod("poseidon-0", "")
    result = status("--kubeconfig", kubeconfig())
    assert result.exit_code == 1
    assert "no answer from pod kube-system/poseidon-0, port 10271: error forwarding port 10271" in result.stderr
    assert "try `kubectl port-forward -n kube-system poseidon-0 10271`, and --address 127.0.0.1:10271" in result.stderr
