"""The conditions of Kubernetes' PodGroups."""

import json
from typing import Any

import pytest

from poseidon_py.report.pod_groups import StatusWriter
from poseidon_py.state.gangs.by_pod_group import NATIVE
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.members import Member, Needs
from poseidon_py.state.records import PodRecord
from protos.gen import flow_pb2
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.gangs.builders import hints, owner_or_group, pod

SINCE = "2026-01-01T00:00:00Z"
OTHER = {"type": "Other", "status": "False", "reason": "X", "message": "", "lastTransitionTime": SINCE}
SCHEDULED = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": SINCE,
}
TARGET = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "PreemptionByScheduler",
    "message": "",
    "lastTransitionTime": SINCE,
}


async def free():
    return {}


class Rig:
    """A group of two pods on an API server that serves PodGroups in one version."""

    def __init__(self, monkeypatch, *conditions, version="v1beta1"):
        monkeypatch.setattr("poseidon_py.report.pod_groups._GATHER", 0.0)
        self.conditions: list[dict[str, Any]] = list(conditions)
        self.path = f"/apis/scheduling.k8s.io/{version}/namespaces/ns/podgroups/g"
        self.group = Group(
            "k", "ns/g", object_ref=(NATIVE, "ns", "g"), message=flow_pb2.Gang(minimum=2), needs=Needs(2)
        )
        record = PodRecord(pod("a"), 1, 0.0)
        record.observed.scheduler = "poseidon"
        self.group.members["a"] = Member(record, hints())
        self.groups = {self.group.id: self.group}
        self.writes = 0
        self.writer = StatusWriter(self, self, self, lambda: True, ["poseidon"], free)  # type: ignore[arg-type]

    def find(self, *reference):
        return owner_or_group(NATIVE)

    def path_of(self, resource, entry):
        return self.path

    async def call(self, verb, path):
        assert (verb, path) == ("GET", self.path)
        return json.dumps({"status": {"conditions": self.conditions}}).encode()

    async def merge(self, path, patch):
        assert path == f"{self.path}/status"
        self.conditions = patch["status"]["conditions"]
        self.writes += 1

    async def note(self, **state):
        """The group has changed; returns type -> (status, reason) as the API server has them afterwards."""
        for name, value in state.items():
            setattr(self.group, name, value)
        self.writer.note(self.group)
        await settle()
        assert len({each["type"] for each in self.conditions}) == len(self.conditions)
        return {each["type"]: (each["status"], each["reason"]) for each in self.conditions}

    def since(self, kind):
        return next(each["lastTransitionTime"] for each in self.conditions if each["type"] == kind)


BOUND = {"complete": True, "bound": {"a": 0, "b": 0}}
GONE: dict[str, Any] = {"complete": False, "bound": {}}


@pytest.mark.parametrize(
    ("version", "kind"),
    [
        ("v1alpha2", "PodGroupScheduled"),
        ("v1alpha3", "PodGroupInitiallyScheduled"),
        ("v1beta1", "PodGroupInitiallyScheduled"),
        ("v1", "PodGroupInitiallyScheduled"),
    ],
)
async def test_the_condition_has_the_name_of_the_version(monkeypatch, version, kind):
    rig = Rig(monkeypatch, OTHER, version=version)
    assert await rig.note() == {"Other": ("False", "X"), kind: ("False", "Unschedulable")}
    assert await rig.note(**BOUND) == {"Other": ("False", "X"), kind: ("True", "Scheduled")}


async def test_a_group_that_was_scheduled_once_stays_so_but_not_in_the_first_version(monkeypatch):
    rig = Rig(monkeypatch, SCHEDULED)
    assert await rig.note() == {"PodGroupInitiallyScheduled": ("True", "Scheduled")}
    assert rig.since("PodGroupInitiallyScheduled") == SINCE
    rig = Rig(monkeypatch, {**SCHEDULED, "type": "PodGroupScheduled"}, version="v1alpha2")
    assert await rig.note() == {"PodGroupScheduled": ("False", "Unschedulable")}
    assert rig.since("PodGroupScheduled") > SINCE


async def test_a_group_whose_pods_are_all_preempted_is_marked_until_it_is_scheduled_again(monkeypatch):
    rig = Rig(monkeypatch, SCHEDULED, OTHER)
    others = {"PodGroupInitiallyScheduled": ("True", "Scheduled"), "Other": ("False", "X")}
    target = {"DisruptionTarget": ("True", "PreemptionByScheduler")}
    assert await rig.note(**BOUND) == others
    assert await rig.note(preempted=True) == others | target
    since = rig.since("DisruptionTarget")
    assert await rig.note(**GONE) == others | target
    assert await rig.note(**GONE, preempted=False) == others | target  # a new member is being bound
    assert rig.since("DisruptionTarget") == since
    assert await rig.note(**BOUND) == others


async def test_a_leader_keeps_the_mark_of_an_earlier_one_until_the_group_is_scheduled(monkeypatch):
    rig = Rig(monkeypatch, TARGET)
    assert (await rig.note())["DisruptionTarget"] == ("True", "PreemptionByScheduler")
    assert "DisruptionTarget" not in await rig.note(**BOUND)


async def test_a_condition_that_another_client_set_stays(monkeypatch):
    rig = Rig(monkeypatch, {**TARGET, "reason": "DeletionByController"})
    assert (await rig.note(**BOUND))["DisruptionTarget"] == ("True", "DeletionByController")
