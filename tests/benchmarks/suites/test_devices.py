"""The suite of pods with device claims at a small scale, and the audit of what devices they are given."""

from dataclasses import replace
from typing import Any

import pytest
from click.testing import CliRunner

from benchmarks.__main__ import cli
from benchmarks.harness import specs
from benchmarks.harness.results import read
from benchmarks.harness.runner import Options
from benchmarks.live.perf.sizes import parse
from benchmarks.live.perf.templates import NODES, TEMPLATES
from benchmarks.loads.devices import device_objects
from benchmarks.loads.devices.bridge_path import PathSpec, measured
from benchmarks.loads.devices.claim_audit import ClaimAudit
from benchmarks.suites import devices as suite
from poseidon_py.devices.selections import Memberships

SUITE = specs.load("devices")
LIVE = [case for case in SUITE.cases if case.sizes["mode"] == "perf"]


@pytest.mark.parametrize("kind", device_objects.KINDS)
def test_the_bridge_gives_all_devices_of_a_full_cluster(kind):
    number = {"match": 15, "shared": 300}.get(kind, 30)
    (given, *_) = (case for case in SUITE.cases if case.sizes["mode"] == "bridge")
    sizes = {**given.sizes, "nodes": 3, "pods": number, "claim": kind}
    sample = suite.measure(replace(given, sizes=sizes), Options())
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.metrics["bridge_us_per_pod"] > 0
    assert sample.facts["allocations"] == {"match": 15, "shared": 2}.get(kind, 30), (
        "256 users of the first, 44 of another"
    )


def test_devices_of_running_pods_are_not_given_away():
    path = measured(PathSpec(nodes=4, pods=20, running=0.5))
    assert list(path.wrong()) == []
    assert (path.audit.in_use, path.figures.placed) == (40, 20)


def test_a_pod_and_its_users_are_described_a_bounded_number_of_times():
    """Once when it comes, and once when it is bound: not once for each of the 256 that have the same claim."""
    figures = measured(PathSpec(nodes=2, pods=512, kind="shared")).figures
    assert figures.pods_described <= 3 * 512


def test_a_scheduler_that_disregards_selectors_is_found(monkeypatch):
    monkeypatch.setattr(Memberships, "suits", lambda self, selection, device: True)
    path = measured(PathSpec(nodes=2, pods=10))
    assert any("which it does not select" in each for each in path.wrong())


def allocated(name, *devices, node="n0", users=(), driver=device_objects.DRIVER):
    results = [{"request": "device", "driver": driver, "pool": node, "device": each} for each in devices]
    status: dict[str, Any] = {"allocation": {"devices": {"results": results}}} if devices else {}
    status["reservedFor"] = [{"resource": "pods", "name": each, "uid": each} for each in users]
    return {"metadata": {"name": name, "uid": f"uid-{name}"}, "status": status}


def audit_of(*changes, kind="selector"):
    audit = ClaimAudit(kind, ["n0", "n1"], 4)
    for change in changes:
        audit.take(*change)
    return audit


def test_the_audit_accepts_what_is_right():
    audit = audit_of(
        ("ADDED", allocated("a")),
        ("MODIFIED", allocated("a", "new-0", users=["p"])),
        ("ADDED", allocated("b", "new-1", users=["q"], node="n1")),
        ("MODIFIED", allocated("a")),
        ("ADDED", allocated("c", "new-0")),
        ("DELETED", allocated("b", "new-1", node="n1")),
        ("ADDED", allocated("d", "new-1", node="n1")),
    )
    assert audit.wrong == []
    assert (audit.allocations, audit.in_use, audit.nodes) == (4, 2, {"p": "n0", "q": "n1"})


@pytest.mark.parametrize(
    ("kind", "claims", "text"),
    [
        ("selector", [("a", ["new-0"]), ("b", ["new-0"])], "given to claim b and to uid-a"),
        ("selector", [("a", ["old-0"])], "which it does not select"),
        ("selector", [("a", ["new-7"])], "which it does not select"),
        ("selector", [("a", ["new-0", "new-1"])], "has 2 devices, and asks for 1"),
        ("match", [("a", ["new-1", "new-2"])], "of several rails"),
        ("match", [("a", ["new-1", "new-1"])], "given to claim a"),
    ],
)
def test_the_audit_finds(kind, claims, text):
    audit = audit_of(*(("ADDED", allocated(name, *devices)) for name, devices in claims), kind=kind)
    assert any(text in each for each in audit.wrong), audit.wrong


def test_the_audit_finds_what_was_wrong_for_a_moment():
    audit = audit_of(
        ("ADDED", allocated("a", "new-0")),
        ("ADDED", allocated("b", "new-0")),
        ("DELETED", allocated("a", "new-0")),
    )
    assert len(audit.wrong) == 1
    changed = audit_of(("ADDED", allocated("a", "new-0")), ("MODIFIED", allocated("a", "new-1")))
    assert changed.wrong == ["claim a has other devices than before"]
    unfinished = audit_of(("ADDED", allocated("a", users=["p"])))
    assert unfinished.wrong == ["claim a is reserved and has no devices"]


@pytest.mark.parametrize("case", LIVE, ids=lambda case: case.name)
def test_the_pods_of_a_live_case_fit_at_every_scale(case):
    for scale in (1.0, 0.1, 0.02):
        sizes = parse(case.sizes, Options(scale=scale))
        claims, shape = sizes.claims, NODES[sizes.node]
        assert claims is not None
        assert claims.kind in device_objects.KINDS
        assert sizes.template in TEMPLATES
        each = device_objects.device_count(claims.kind)
        places = sizes.nodes * (claims.devices // each)
        used = min(round(claims.running * places), places - claims.left)
        at_once = claims.at_once or (-(-sizes.pods // 256) if claims.kind == "shared" else sizes.pods)
        assert at_once <= places - used
        assert shape.pods > 256


@pytest.mark.e2e
@pytest.mark.parametrize("name", ["live/extended", "live/steady-full"])
def test_a_live_case_is_measured_beside_the_blind_writer(tmp_path, name):
    out = tmp_path / "r.json"
    arguments = ["run", "devices", "--case", name, "--scale", "0.01", "--repeat", "1", "--json", str(out)]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 0, done.output
    (case,) = read(out).cases
    assert (case.failed, case.checked) == ([], 6), "three of each: all bound, devices, nodes"
    found = {metric: values[0] for metric, values in case.samples.items()}
    assert found["ratio"] == pytest.approx(found["bound_per_s"] / found["blind_per_s"])
    assert found["bridge_us_per_pod"] > 0
    assert found["engine_us_per_pod"] > 0


def test_the_blind_writer_cannot_be_the_other_scheduler():
    arguments = ["run", "devices", "--case", "live/selector", "--against", "blind", "--start", "nobody"]
    done = CliRunner().invoke(cli, arguments)
    assert done.exit_code == 2
    assert "give another scheduler" in " ".join(done.output.split())
