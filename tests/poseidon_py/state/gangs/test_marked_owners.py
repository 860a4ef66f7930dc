"""Owners that other schedulers' controllers make PodGroups for: KAI's annotation with a minimum, the label of Ray."""

import pytest

from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.gangs.model import Owner
from poseidon_py.state.gangs.owner_kinds import RAY_CLUSTERS
from poseidon_py.state.gangs.resolve import resolve
from tests.poseidon_py.state.gangs.builders import JOB, SET, Objects, hints, owner_or_group

MINIMUM, GANG = "kai.scheduler/batch-min-member", "ray.io/gang-scheduling-enabled"
CLUSTER = Owner("RayCluster", "r", "uid-r", "ray.io")
WORKERS = {"headGroupSpec": {}, "workerGroupSpecs": [{"groupName": "w", "replicas": 3}]}


def of_job(owner=None, annotations=None):
    return JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 5}, annotations=annotations, owner=owner)


def declared(hints_of_pod, objects):
    found = resolve(hints_of_pod, objects)
    assert (found.invalid, found.unknown) == ("", "")
    return found.declaration


def cluster(**labels):
    return RAY_CLUSTERS, owner_or_group(RAY_CLUSTERS, "r", spec=WORKERS, labels=labels)


def test_the_minimum_of_an_owner_counts_for_pods_without_a_group():
    objects = Objects(of_job(annotations={MINIMUM: "2"}))
    found = declared(hints(owner=JOB), objects)
    assert found is not None
    assert (found.key, found.name, found.minimum, found.size) == ("kai-owner/uid-j", "ns/j", 2, 5)
    in_group = declared(hints(owner=JOB, annotations={"pod-group-name": "g"}), objects)
    assert in_group is not None
    assert in_group.waits.startswith("pod group")


@pytest.mark.parametrize("value", ["0", "many"])
def test_a_minimum_that_is_no_number_is_refused(value):
    assert MINIMUM in resolve(hints(owner=JOB), Objects(of_job(annotations={MINIMUM: value}))).invalid


def test_the_minimum_of_a_job_set_is_refused():
    above = (JOB_SETS, owner_or_group(JOB_SETS, "s", annotations={MINIMUM: "2"}))
    invalid = resolve(hints(owner=JOB), Objects(of_job(owner=SET), above)).invalid
    assert "numbers of groups are not supported" in invalid


@pytest.mark.parametrize("value", ["true", "", "yes"])
def test_the_pods_of_a_marked_ray_cluster_are_a_gang(value):
    found = declared(hints(owner=CLUSTER), Objects(cluster(**{GANG: value})))
    assert found is not None
    assert (found.convention, found.key, found.minimum, found.size) == ("Ray", "ray/uid-r", 4, 4)


@pytest.mark.parametrize("labels", [{}, {GANG: "false"}, {GANG: "False"}])
def test_those_of_others_are_none(labels):
    assert declared(hints(owner=CLUSTER), Objects(cluster(**labels))) is None


def test_what_a_pod_declares_itself_comes_first():
    annotations = {"poseidon.io/gang": "2"}
    found = declared(hints(owner=CLUSTER, annotations=annotations), Objects(cluster(**{GANG: "true"})))
    assert found is not None
    assert found.minimum == 2
