"""What objects say about their suspension."""

import json

import pytest
from msgspec import Raw

from poseidon_py.kube.objects import InvalidField, Metadata
from poseidon_py.kube.workload_objects import LIMIT, Suspension, limit_of, suspension_of


def read(plural, spec, group="batch", annotations=None):
    about = Metadata(annotations=Raw(json.dumps(annotations).encode()))
    return suspension_of(group, plural, about, Raw(json.dumps(spec).encode()))


def test_a_kind_without_the_field_cannot_be_suspended():
    """A CronJob has one of the same name, which only keeps it from making further Jobs."""
    assert read("deployments", {}, "apps") is None
    assert read("cronjobs", {"suspend": True}) is None


@pytest.mark.parametrize(
    ("group", "plural", "spec", "suspended"),
    [
        ("batch", "jobs", {"suspend": True}, True),
        ("batch", "jobs", {"suspend": None}, False),
        ("batch", "jobs", {"runPolicy": {"suspend": True}}, False),
        ("kubeflow.org", "tfjobs", {"runPolicy": {"suspend": True}}, True),
        ("kubeflow.org", "tfjobs", {"suspend": True}, False),
        ("kubeflow.org", "tfjobs", {"runPolicy": None}, False),
    ],
)
def test_the_field_is_that_of_the_kind(group, plural, spec, suspended):
    assert read(plural, spec, group).suspended is suspended


def test_the_templates_of_a_suspended_object_tell_its_schedulers_and_its_priority():
    """Wherever they are: those of an AppWrapper are whole objects."""
    pod = {"spec": {"schedulerName": "poseidon", "priorityClassName": "high"}}
    spec = {"suspend": True, "components": [{"template": {"spec": {"template": pod}}}, {"template": pod}]}
    found = read("appwrappers", spec, "workload.codeflare.dev")
    assert (found.schedulers, found.priority_class) == (frozenset(("poseidon",)), "high")
    policy = {"suspend": True, "schedulingPolicy": {"priorityClass": "of the job"}}
    replicas = {"Worker": {"template": {"spec": {"priorityClassName": "of the pods"}}}}
    found = read("pytorchjobs", {"runPolicy": policy, "pytorchReplicaSpecs": replicas}, "kubeflow.org")
    assert found.priority_class == "of the job"


def test_the_templates_of_others_are_not_read():
    template = {"spec": {"schedulerName": "poseidon"}}
    assert read("jobs", {"template": template}).schedulers == frozenset()


def test_annotations():
    annotations = {"poseidon.io/suspended": "{}", "poseidon.io/resume": "False", "poseidon.io/ran-seconds": "40"}
    found = read("jobs", {"suspend": True}, annotations=annotations)
    assert (found.note, found.stays, found.ran) == ("{}", True, 40.0)
    assert read("jobs", {}, annotations={"poseidon.io/ran-seconds": "forty"}).ran == 0
    assert read("jobs", {}, annotations={"poseidon.io/resume": 1}) == Suspension()  # invalid: none counts


def test_an_invalid_spec_names_the_field():
    with pytest.raises(InvalidField, match=r"suspend"):
        read("jobs", {"suspend": "yes"})


def test_the_limit_is_a_label():
    assert limit_of(Raw(json.dumps({LIMIT: "60"}).encode())) == "60"
    assert limit_of(Raw(json.dumps({"other": LIMIT}).encode())) == ""
    assert limit_of(Raw(b'{"%b": 60}' % LIMIT.encode())) == ""
    assert limit_of(Raw()) == ""
