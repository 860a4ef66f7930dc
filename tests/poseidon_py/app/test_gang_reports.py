"""A gang that falls below its minimum is reported, unless its owner's progress explains it."""

import asyncio
from typing import Any, cast
from unittest.mock import Mock

import pytest

from poseidon_py.app import gang_reports
from poseidon_py.app.gang_reports import GangReports
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.state.gangs.by_owner import JOBS
from tests.poseidon_py.state.gangs.builders import JOB, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

SPEC = {"parallelism": 3, "completions": 3}


class Reporter:
    def __init__(self):
        self.remarks = []

    def remark(self, known, reason, message):
        self.remarks.append((known.name, reason, message))


class Reported(Rig):
    """A rig whose registry reports through GangReports."""

    def __init__(self):
        super().__init__((JOBS, owner_or_group(JOBS, "j", spec=SPEC)))
        self.registry.form_gangs_from(["jobs"])
        self.reporter = Reporter()
        leadership, no_statuses = Leadership(), cast("Any", Mock())
        leadership.lead()
        self.reports = GangReports(
            self.store, cast("Any", self.reporter), no_statuses, leadership, lambda resource: ("v1", "X")
        )
        for name in "abc":
            self.pod(name, owner=JOB, node="n")

    def below_minimum(self, group):
        self.reports.below_minimum(group)


@pytest.fixture
async def rig(monkeypatch):
    monkeypatch.setattr(gang_reports, "_PROGRESS_SECONDS", 0.0)
    return Reported()


async def test_a_member_that_is_lost_is_reported(rig):
    rig.gone("a")
    assert rig.reporter.remarks == []
    await asyncio.sleep(0.01)
    message = "pod group ns/j: only 2 of at least 3 members are left"
    assert rig.reporter.remarks == [(name, "GangBelowMinimum", message) for name in "bc"]


async def test_the_report_says_how_many_have_succeeded_and_goes_to_pods_of_this_scheduler(rig):
    declaring = {
        "labels": {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "4"},
        "node": "n",
    }
    for name in ("d", "e", "f"):
        rig.pod(name, **declaring)
    rig.pod("g", scheduler="other", **declaring)
    rig.pod("d", phase="Succeeded", **declaring)
    await asyncio.sleep(0.01)
    assert rig.reporter.remarks == []
    rig.gone("e")
    await asyncio.sleep(0.01)
    message = "pod group ns/g: only 2 of at least 4 members are left, and 1 has succeeded"
    assert rig.reporter.remarks == [("f", "GangBelowMinimum", message)]


async def test_a_member_that_has_succeeded_is_not(rig):
    rig.gone("a")
    rig.put(JOBS, owner_or_group(JOBS, "j", spec=SPEC, status={"succeeded": 1}))
    await asyncio.sleep(0.01)
    assert rig.reporter.remarks == []
    rig.gone("b")
    await asyncio.sleep(0.01)
    assert [name for name, _, _ in rig.reporter.remarks] == ["c"]
