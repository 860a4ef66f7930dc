"""What objects of resource.k8s.io declare without effect, or is refused."""

import json
from typing import Any

import msgspec
import pytest

from poseidon_py.app.devices.declarations import DeclarationReader, DeclarationReports
from poseidon_py.conventions.tables.devices import DEVICES
from poseidon_py.conventions.verdicts import Effect
from poseidon_py.devices.objects import (
    ClassSpec,
    DeviceClaimSpec,
    DeviceClaimStatus,
    DeviceClass,
    ResourceClaim,
    ResourceSlice,
    SliceSpec,
    WatchedObject,
)
from poseidon_py.kube.objects import InvalidField
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.state.object_handler import by_name
from tests.poseidon_py.conventions.case import changed


class Remarked:
    """Stands for the Reporter."""

    def __init__(self):
        self.texts: list[tuple[str, str, str, str]] = []

    def remark_on_object(self, version, kind, namespace, name, uid, message):
        self.texts.append((version, kind, name, message))


class Read:
    def __init__(self, kind, *parts, leads=True):
        self.reporter = Remarked()
        self.items: list[Any] = []
        self.gone: list[str] = []
        leadership = Leadership()
        if leads:
            leadership.lead()
        self.leadership = leadership
        self.reports = DeclarationReports(self.reporter.remark_on_object, leadership)
        self.reader = DeclarationReader(
            kind, parts, by_name, self.items.append, self.gone.append, self.reports, lambda: "resource.k8s.io/v1"
        )

    def put(self, name, spec, **fields):
        body = {"metadata": {"name": name, "uid": f"uid-{name}"}, "spec": spec, **fields}
        self.reader.put(msgspec.json.decode(json.dumps(body), type=WatchedObject))

    def messages(self):
        found, self.reporter.texts = [text for *_, text in self.reporter.texts], []
        return found


def of_driver(**device):
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return {"driver": "d.example.com", "pool": pool, "nodeName": "n", "devices": [{"name": "d0", **device}]}


UNKNOWN = "is not known here and has no effect; remove it, or use a version that knows it"


def test_a_field_that_is_not_known_is_reported_once_and_the_others_count():
    read = Read(DeviceClass, ClassSpec, None)
    read.put("gpu", {"extendedResourceName": "example.com/gpu", "suitable": {"nodes": 1}})
    assert read.reporter.texts == [("resource.k8s.io/v1", "DeviceClass", "gpu", f"spec.suitable: {UNKNOWN}")]
    assert read.items[0].spec.extended == "example.com/gpu"
    read.messages()
    read.put("gpu", {"suitable": {"nodes": 2}, "colour": "red"})
    assert read.messages() == [f"spec.colour: {UNKNOWN}"]
    read.reader.drop("gpu")
    assert read.gone == ["gpu"]
    read.put("gpu", {"suitable": {"nodes": 2}})
    assert read.messages() == [f"spec.suitable: {UNKNOWN}"]


def test_a_claim_has_its_status_and_what_is_known_is_not_spoken_of():
    read = Read(ResourceClaim, DeviceClaimSpec, DeviceClaimStatus)
    status = {"reservedFor": [{"resource": "pods", "name": "a", "uid": "u"}], "later": 1}
    read.put("c", {"devices": {"requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}]}}, status=status)
    assert [user.uid for user in read.items[0].status.users] == ["u"]
    assert read.messages() == []


REFUSED = [
    pytest.param(path, id=f"{table.versions[0]} {path}")
    for table in DEVICES.kinds
    for path, verdict in table.fields.items()
    if verdict.effect is Effect.REFUSED and table.kind == "ResourceSlice"
]


@pytest.mark.parametrize("path", REFUSED)
def test_a_slice_with_a_field_that_is_refused_is_skipped(path):
    """Devices that take resources of their node: if that were ignored, it would be overcommitted."""
    read = Read(ResourceSlice, SliceSpec, None)
    base = {"spec": of_driver()}
    read.put("s", base["spec"])
    assert len(read.items) == 1
    with pytest.raises(InvalidField, match="that take resources of their node are not supported"):
        read.put("s", changed(base, path, "x")["spec"])
    assert len(read.items) == 1
    assert [text.partition(":")[0] for text in read.messages()] == [path]


def test_of_the_slices_of_a_driver_the_first_is_spoken_of():
    read = Read(ResourceSlice, SliceSpec, None)
    for name in "abc":
        read.put(name, of_driver(colour="red"))
    assert [(kind, name) for _, kind, name, _ in read.reporter.texts] == [("ResourceSlice", "a")]
    assert len(read.items) == 3
    read.put("a", of_driver(colour="red"))
    assert len(read.reporter.texts) == 1


def test_a_new_leader_says_what_was_observed_before():
    read = Read(DeviceClass, ClassSpec, None, leads=False)
    read.put("gpu", {"colour": "red"})
    assert read.messages() == []
    read.leadership.lead()
    read.reports.lead()
    assert read.messages() == [f"spec.colour: {UNKNOWN}"]
