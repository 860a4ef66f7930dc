"""A workload with Kueue's queue label is admitted as a whole, as Kueue admits it: its pods are a gang."""

from collections.abc import Collection

import pytest

from poseidon_py.kube.informers.resource import Resource
from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS, REPLICA_SETS, STATEFUL_SETS
from poseidon_py.state.gangs.model import Owner
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from tests.poseidon_py.state.gangs.builders import JOB, SET, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

QUEUE = {"kueue.x-k8s.io/queue-name": "lq"}
TRAIN_JOBS = Resource("trainer.kubeflow.org", "trainjobs", ("v1alpha1",))


class Queues:
    """Whether queues of Kueue are in force, and the namespaces that have a LocalQueue `default`."""

    in_force = True
    defaults: Collection[str] = ()


@pytest.fixture
def queues():
    return Queues()


@pytest.fixture
def rig(queues):
    rig = Rig()
    rig.registry.form_gangs_from((), lambda: queues.in_force, lambda namespace: namespace in queues.defaults)
    return rig


SPECS = {
    "jobs": {"parallelism": 3},
    "jobsets": {"replicatedJobs": [{"name": "w", "replicas": 3, "template": {"spec": {"parallelism": 1}}}]},
    "mpijobs": {"mpiReplicaSpecs": {"Launcher": {"replicas": 1}, "Worker": {"replicas": 2}}},
    "rayclusters": {"workerGroupSpecs": [{"groupName": "w", "replicas": 2}]},
}
"""Of three pods each; other kinds have three workers. The pods of LeaderWorkerSets declare their gangs themselves."""


@pytest.mark.parametrize("plural", [plural for plural in OWNER_KINDS if plural != "leaderworkersets"])
def test_a_label_on_the_owner_makes_its_pods_a_gang(rig, plural):
    """Kueue's examples, such as sample-pytorchjob: the label is on the owner alone, and part of its pods ran."""
    kind, resource, replicas = OWNER_KINDS[plural]
    spec = SPECS.get(plural, {replicas: {"Worker": {"replicas": 3}}})
    rig.put(resource, owner_or_group(resource, "t", spec=spec, labels=QUEUE))
    rig.pod("a", owner=Owner(kind, "t", "uid-t", resource.group))
    assert rig.gang("a") == (3, "ns/t")


def test_an_owner_without_the_label_is_no_workload(rig):
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None


@pytest.mark.parametrize("level", ["TrainJob", "JobSet"])
def test_the_uppermost_owner_with_known_pods_is_the_workload(rig, level):
    """Of a TrainJob only its metadata is known: the JobSet below it has the number of pods."""
    train = Owner("TrainJob", "t", "uid-t", "trainer.kubeflow.org")
    rig.put(TRAIN_JOBS, owner_or_group(TRAIN_JOBS, "t", labels=QUEUE if level == "TrainJob" else None))
    jobs = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4}}}]}
    rig.put(
        JOB_SETS, owner_or_group(JOB_SETS, "s", spec=jobs, owner=train, labels=QUEUE if level == "JobSet" else None)
    )
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4}, owner=SET))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == (8, "ns/s")


def test_a_label_of_a_job_below_counts_for_that_job_alone(rig):
    jobs = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4}}}]}
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=jobs))
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4}, owner=SET, labels=QUEUE))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == (4, "ns/j")


def test_the_least_parallelism_of_a_job_is_its_minimum(rig):
    """Partial admission of Kueue: pkg/controller/jobs/job/job_controller.go, JobMinParallelismAnnotation."""
    least = {"kueue.x-k8s.io/job-min-parallelism": "2"}
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 5}, labels=QUEUE, annotations=least))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == (2, "ns/j")


def test_an_invalid_least_parallelism_is_said_and_its_pods_wait(rig):
    least = {"kueue.x-k8s.io/job-min-parallelism": "few"}
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 5}, labels=QUEUE, annotations=least))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == (
        "annotation kueue.x-k8s.io/job-min-parallelism: 'few' is not valid; give a whole number from 1 to 2147483647"
    )


def test_a_declared_gang_comes_first(rig):
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 5}, labels=QUEUE))
    rig.pod("a", owner=JOB, annotations={"poseidon.io/gang": "2"})
    assert rig.gang("a") == (2, "ns/j")


def test_other_queues_admit_pods(rig, queues):
    """As Kueue's own controller does once it runs: it admits the workload before its pods are created."""
    queues.in_force = False
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}, labels=QUEUE))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None
    for queues.in_force in (True, False):
        rig.registry.reconsider()
        rig.work()
        assert rig.gang("a") == ((3, "ns/j") if queues.in_force else None)


def test_a_label_that_is_added_later_makes_a_gang(rig):
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}, labels=QUEUE))
    assert rig.gang("a") == (3, "ns/j")
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    assert rig.gang("a") is None


def test_a_label_that_is_added_to_the_uppermost_owner_later_makes_a_gang(rig):
    app = Owner("AppWrapper", "t", "uid-t", "workload.codeflare.dev")
    wrappers = Resource("workload.codeflare.dev", "appwrappers", ("v1beta2",))
    jobs = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4}}}]}
    rig.put(wrappers, owner_or_group(wrappers, "t"))
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=jobs, owner=app))
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4}, owner=SET))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None
    rig.put(wrappers, owner_or_group(wrappers, "t", labels=QUEUE))
    assert rig.gang("a") == (8, "ns/s")


def test_an_owner_that_may_not_be_read_is_said_once(rig):
    rig.objects.forbidden["PyTorchJob"] = "403 Forbidden: no"
    owner = Owner("PyTorchJob", "t", "uid-t", "kubeflow.org")
    for name in "ab":
        rig.pod(name, owner=owner)
        assert rig.gang(name) is None
    assert rig.unreadable == [
        (
            "a",
            "its owner PyTorchJob ns/t cannot be read, so a queue, priority or gang that it declares has no effect: "
            "403 Forbidden: no",
        )
    ]


def test_an_owner_above_the_owner_that_may_not_be_read_is_said(rig):
    rig.objects.forbidden["Rollout"] = "403 Forbidden: no"
    above = Owner("Rollout", "r", "uid-r", "argoproj.io")
    rig.put(REPLICA_SETS, owner_or_group(REPLICA_SETS, "s", spec={}, owner=above))
    rig.pod("a", owner=Owner("ReplicaSet", "s", "uid-s", "apps"))
    assert rig.gang("a") is None
    assert [name for name, why in rig.unreadable if "its owner Rollout ns/r cannot be read" in why] == ["a"]


# -- in a namespace with a LocalQueue `default` ---------------------------------------------------------------------


@pytest.fixture
def default(queues):
    queues.defaults = {"ns"}


JOBS_OF_SET = {"replicatedJobs": [{"name": "w", "replicas": 2, "template": {"spec": {"parallelism": 4}}}]}
WRAPPERS = Resource("workload.codeflare.dev", "appwrappers", ("v1beta2",))
WRAPPER = Owner("AppWrapper", "t", "uid-t", "workload.codeflare.dev")


@pytest.mark.parametrize("namespace", ["ns", "other"])
def test_an_owner_that_names_no_queue_counts_as_labelled_default(rig, queues, namespace):
    """Kueue's webhooks give it the label: pkg/controller/jobframework/defaults.go."""
    queues.defaults = {namespace}
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == ((3, "ns/j") if namespace == "ns" else None)


@pytest.mark.usefixtures("default")
@pytest.mark.parametrize("labelled", [(), ("j",)], ids=["no label", "a label below"])
def test_the_uppermost_owner_that_names_no_queue_is_the_workload(rig, labelled):
    rig.put(WRAPPERS, owner_or_group(WRAPPERS, "t"))
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=JOBS_OF_SET, owner=WRAPPER))
    labels = QUEUE if "j" in labelled else None
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 4}, owner=SET, labels=labels))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == (8, "ns/s")


@pytest.mark.usefixtures("default")
def test_a_job_of_a_cron_job_is_a_workload(rig):
    cron_jobs = Resource("batch", "cronjobs", ("v1",))
    rig.put(cron_jobs, owner_or_group(cron_jobs, "c"))
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}, owner=Owner("CronJob", "c", "uid-c", "batch")))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") == (3, "ns/j")


@pytest.mark.usefixtures("default")
@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet"])
def test_pods_of_services_are_admitted_one_by_one_there_too(rig, kind):
    resource = REPLICA_SETS if kind == "ReplicaSet" else STATEFUL_SETS
    rig.put(resource, owner_or_group(resource, "r", spec={"replicas": 3}))
    rig.pod("a", owner=Owner(kind, "r", "uid-r", "apps"))
    assert rig.gang("a") is None


@pytest.mark.usefixtures("default")
def test_an_owner_in_one_of_our_own_queues_is_no_workload(rig):
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}, labels={"poseidon.io/queue": "team"}))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None


def test_a_default_queue_that_comes_and_goes_makes_and_ends_gangs(rig, queues):
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    rig.pod("a", owner=JOB)
    for queues.defaults in ({"ns"}, ()):
        rig.registry.reconsider()
        rig.work()
        assert rig.gang("a") == ((3, "ns/j") if queues.defaults else None)


@pytest.mark.usefixtures("default")
def test_a_job_of_one_pod_that_grows_becomes_a_gang(rig):
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 1}))
    rig.pod("a", owner=JOB)
    assert rig.gang("a") is None
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 3}))
    assert rig.gang("a") == (3, "ns/j")
