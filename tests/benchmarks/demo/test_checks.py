"""Each check passes on a sound outcome and fails on the violation that it should find."""

import pytest

from benchmarks.demo.checks import run_checks
from benchmarks.demo.evidence import Evidence
from benchmarks.demo.summary import rounds_of
from poseidon_py.metrics.metrics import Metrics
from tests.benchmarks.demo.builders import GOOD_METRICS, make_evidence, make_node, make_pod

GPU_TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


def failed(evidence, expected=None, settled=True):
    """The first words of the checks that failed."""
    mine = sum(pod["spec"]["schedulerName"] == "poseidon" for pod in evidence.pods)
    checks = run_checks(evidence, "poseidon", mine if expected is None else expected, settled)
    assert len(checks) == 10
    assert all(check.detail for check in checks)
    return [check.name for check in checks if not check.ok]


def only(names, *words):
    return len(names) == len(words) and all(word in name for word, name in zip(words, names, strict=True))


def test_a_sound_outcome_passes_all_checks():
    pods = [make_pod("a", "n1"), make_pod("b", "n1", phase="Succeeded"), make_pod("big", cpu="100")]
    entries = [("bind", "a", "n1"), ("bind", "b", "n1"), ("finish", "b", "n1")]
    assert failed(make_evidence(pods, entries=entries)) == []


@pytest.mark.parametrize(
    ("extra", "node"),
    [
        pytest.param({"cpu": "3001m"}, {}, id="cpu"),
        pytest.param({"memory": "7.5Gi"}, {}, id="memory"),
        pytest.param({}, {"pods": "1"}, id="pod count"),
        pytest.param({"overhead": {"cpu": "2100m"}}, {}, id="pod overhead"),
        pytest.param(
            {"initContainers": [{"name": "i", "image": "i", "resources": {"requests": {"cpu": "3500m"}}}]},
            {},
            id="init",
        ),
        pytest.param({"scheduler": "somebody-else", "cpu": "3500m"}, {}, id="pods of other schedulers count"),
    ],
)
def test_an_over_committed_node_is_found(extra, node):
    # a requests 1 cpu and 1 GiB of 4 cpu and 8 GiB; b is too much beside it
    evidence = make_evidence([make_pod("a", "n1"), make_pod("b", "n1", **extra)], [make_node(**node)])
    assert only(failed(evidence), "over-committed")


def test_an_extended_resource_that_is_over_committed_is_found():
    wants = {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"example.com/gpu": "3"}}}]}
    evidence = make_evidence(
        [make_pod("a", "n1", **wants), make_pod("b", "n1", **wants)], [make_node(**{"example.com/gpu": "5"})]
    )
    assert only(failed(evidence), "over-committed")


def test_a_node_that_was_over_committed_for_a_while_is_found():
    pods = [make_pod("a", "n1", cpu="3", phase="Succeeded"), make_pod("b", "n1", cpu="3")]
    sound = [("bind", "a", "n1"), ("finish", "a", "n1"), ("bind", "b", "n1")]
    assert failed(make_evidence(pods, entries=sound)) == []
    early = [("bind", "a", "n1"), ("bind", "b", "n1"), ("finish", "a", "n1")]
    assert only(failed(make_evidence(pods, entries=early)), "over-committed")


def test_a_rejection_by_a_kubelet_is_found():
    assert only(failed(make_evidence([make_pod("a", "n1")], rejected={"OutOfcpu": 1})), "kubelet")


def test_a_rejection_is_found_in_the_pods_if_the_server_has_no_count():
    pod = make_pod("a", "n1", phase="Failed")
    pod["status"]["reason"] = "OutOfcpu"
    assert only(failed(make_evidence([pod], entries=[])), "kubelet")


def test_a_pod_that_was_bound_twice_is_found():
    evidence = make_evidence([make_pod("a", "n1")], entries=[("bind", "a", "n1"), ("bind", "a", "n1")])
    assert only(failed(evidence), "bound twice")


@pytest.mark.parametrize(
    ("spec", "node"),
    [
        pytest.param({"nodeSelector": {"pool": "b"}}, {"labels": {"pool": "a"}}, id="selector"),
        pytest.param({}, {"taints": [GPU_TAINT]}, id="taint"),
        pytest.param(
            {"tolerations": [{"key": "cpu", "operator": "Exists"}]}, {"taints": [GPU_TAINT]}, id="other taint"
        ),
    ],
)
def test_a_pod_on_an_unsuitable_node_is_found(spec, node):
    assert only(
        failed(make_evidence([make_pod("a", "n1", **spec)], [make_node(**node)])), "selectors, affinity and tolerations"
    )


def test_tolerated_and_preferred_taints_are_allowed():
    spec = {"tolerations": [{"key": "gpu", "operator": "Exists"}]}
    nodes = [make_node(taints=[GPU_TAINT, {"key": "x", "effect": "PreferNoSchedule"}])]
    assert failed(make_evidence([make_pod("a", "n1", **spec)], nodes)) == []


def test_a_pod_on_a_node_that_does_not_exist_is_found():
    assert only(
        failed(make_evidence([make_pod("a", "ghost")])), "over-committed", "selectors, affinity and tolerations"
    )


def test_a_pod_with_a_claim_may_wait_although_its_requests_fit_and_needs_devices_once_it_runs():
    entry = [{"name": "e", "resourceClaimName": "c"}]
    assert failed(make_evidence([make_pod("w", resourceClaims=entry)])) == []
    assert only(failed(make_evidence([make_pod("r", "n1", resourceClaims=entry)])), "devices of its own")


def test_a_pod_that_waits_although_it_fits_is_found():
    # 4 cpu, 3 in use: a pod of 1 fits, one of 1.001 does not
    pods = [make_pod("a", "n1", cpu="3"), make_pod("w", cpu="1")]
    assert only(failed(make_evidence(pods)), "fits in the free capacity")
    pods = [make_pod("a", "n1", cpu="3"), make_pod("w", cpu="1001m")]
    assert failed(make_evidence(pods)) == []


def test_capacity_of_unsuitable_nodes_does_not_count():
    assert failed(make_evidence([make_pod("w")], [make_node(taints=[GPU_TAINT])])) == []
    assert failed(make_evidence([make_pod("w", nodeSelector={"pool": "x"})])) == []


def test_capacity_of_ended_pods_is_free():
    pods = [make_pod("a", "n1", cpu="4", phase="Succeeded"), make_pod("w", cpu="4")]
    entries = [("bind", "a", "n1"), ("finish", "a", "n1")]
    assert only(failed(make_evidence(pods, entries=entries)), "fits in the free capacity")


def test_a_gated_pod_may_wait_although_it_fits():
    assert failed(make_evidence([make_pod("w", schedulingGates=[{"name": "g"}])])) == []


@pytest.mark.parametrize("field", ["reason", "message", "status"])
def test_a_pod_that_waits_without_a_reason_is_found(field):
    pod = make_pod("w", cpu="100")
    pod["status"]["conditions"][0][field] = ""
    assert only(failed(make_evidence([pod])), "condition")


def test_a_pod_that_waits_without_a_condition_is_found():
    assert only(failed(make_evidence([make_pod("w", cpu="100", reason="")])), "condition")


def test_lost_pods_and_an_unsettled_workload_are_found():
    evidence = make_evidence([make_pod("a", "n1")])
    assert only(failed(evidence, expected=2), "every submitted pod")
    assert only(failed(evidence, settled=False), "every submitted pod")


@pytest.mark.parametrize(
    "bad",
    [
        {"poseidon_placements_dropped_total": 1.0},
        {'scheduler_schedule_attempts_total{result="error"}': 2.0},
        {'poseidon_rounds_total{result="failed"}': 1.0},
        {'poseidon_engine_refusals_total{kind="task"}': 1.0},
        {"poseidon_firmament_starts_total": 2.0},
    ],
    ids=str,
)
def test_errors_that_the_scheduler_reports_are_found(bad):
    assert only(failed(make_evidence([make_pod("a", "n1")], metrics={**GOOD_METRICS, **bad})), "no error")


def test_missing_metrics_fail_the_check():
    assert only(failed(make_evidence([make_pod("a", "n1")], metrics={})), "no error")


def test_every_metric_that_the_check_reads_exists(monkeypatch):
    """A metric that the scheduler does not have would count as 0, and so pass."""
    read = set()

    def metric(self, name, **labels):
        read.add(name)
        return 1.0

    monkeypatch.setattr(Evidence, "metric", metric)
    run_checks(make_evidence([]), "poseidon", 0, settled=True)
    rounds_of(make_evidence([]))
    known = {
        name
        for family in Metrics().registry.collect()
        for name in (f"{family.name}_total", f"{family.name}_count", f"{family.name}_sum")
    }
    assert len(read) >= 6
    assert read <= known
