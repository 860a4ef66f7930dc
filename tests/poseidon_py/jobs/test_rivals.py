"""Signs of Volcano's own controller, on a virtual clock."""

import asyncio

import pytest

from poseidon_py.jobs.rivals import Rivals
from poseidon_py.kube.client import ApiError, UnreachableError
from tests.poseidon_py.jobs.fake_api import FakeApi

LEASES, DEPLOYMENTS = "/apis/coordination.k8s.io/v1/leases", "/apis/apps/v1/deployments"
NOW = 1767225600.0  # 2026-01-01T00:00:00Z


class Rig:
    def __init__(self):
        self.api = FakeApi()
        self.clock = 0.0
        self.changes = 0
        self.rivals = Rivals(self.api, self._changed, monotonic=lambda: self.clock, now=lambda: NOW + self.clock)

    def _changed(self):
        self.changes += 1

    def lease(self, renewed, holder="vc-1"):
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
        metadata = {"name": "vc-controller-manager", "namespace": "volcano-system", "uid": "l"}
        self.api.pages[LEASES] = [{"metadata": metadata, "spec": spec}]

    def after(self, seconds):
        self.clock += seconds
        asyncio.run(self.rivals.poll())
        return self.rivals.problem


def test_without_volcano_it_may_work_at_once():
    rig = Rig()
    assert rig.rivals.problem is None
    assert rig.after(0) == ""
    assert rig.changes == 1


def test_a_lease_that_is_renewed_is_a_rival_whatever_its_clock_says():
    rig = Rig()
    rig.lease("2020-01-01T00:00:00.000000Z")  # its clock is years behind, or it ended years ago
    assert rig.after(0) == ""
    rig.lease("2020-01-01T00:00:10.000000Z")
    assert "vc-1 renews lease volcano-system/vc-controller-manager" in rig.after(5)
    assert "kubectl -n volcano-system scale deployment volcano-controllers --replicas=0" in (rig.rivals.problem or "")
    assert rig.after(29)  # two durations of 15 s after the renewal was seen
    assert rig.after(1) == ""
    assert rig.changes == 3


def test_a_fresh_lease_is_a_rival_from_the_start():
    rig = Rig()
    rig.lease("2025-12-31T23:59:50.000000Z")  # 10 s old
    assert "vc-1" in rig.after(0)
    assert rig.after(20) == ""


def test_a_released_lease_is_none():
    rig = Rig()
    rig.lease("2026-01-01T00:00:00.000000Z", holder="")
    assert rig.after(0) == ""


@pytest.mark.parametrize(("replicas", "rival"), [(2, True), (None, True), (0, False)])
def test_a_deployment_that_is_to_have_pods_is_a_rival_even_while_none_is_ready(replicas, rival):
    rig = Rig()
    metadata = {"name": "volcano-controllers", "namespace": "volcano-system"}
    spec = {} if replicas is None else {"replicas": replicas}
    rig.api.pages[DEPLOYMENTS] = [{"metadata": metadata, "spec": spec, "status": {"readyReplicas": 0}}]
    assert bool(rig.after(0)) is rival


def test_without_the_right_to_list_deployments_the_lease_decides():
    rig = Rig()
    rig.api.refusals.append(("GET", DEPLOYMENTS, ApiError(403, "Forbidden", "no")))
    assert rig.after(0) == ""


def test_an_outage_changes_nothing():
    rig = Rig()
    rig.api.refusals.append(("GET", LEASES, UnreachableError("down")))
    assert rig.after(0) is None
    rig.api.refusals.clear()
    assert rig.after(5) == ""
    rig.api.refusals.append(("GET", LEASES, UnreachableError("down")))
    assert rig.after(5) == ""


def test_a_foreign_change_of_a_status_is_a_rival_for_a_minute():
    rig = Rig()
    rig.after(0)
    rig.rivals.stranger("the status of job a/b was changed")
    assert "the status of job a/b was changed, and not by this controller" in (rig.rivals.problem or "")
    assert rig.after(59)
    assert rig.after(1) == ""
