"""Groups whose other pods are created only once their leader has a node: the leader is placed on its own, the others
together. They waited for each other for ever.

LeaderWorkerSet: pkg/controllers/pod_controller.go ("if exclusive placement is enabled but leader pod is not scheduled,
don't create the worker sts"). JobSet: pkg/webhooks/pod_webhook.go and pkg/util/placement (IsLeaderPod).
"""

import pytest

from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING
from poseidon_py.state.gangs.model import Unknown
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS
from poseidon_py.state.gangs.resolve import resolve
from poseidon_py.state.gangs.without_marks import conventions
from tests.poseidon_py.state.gangs.builders import JOB, SET, Objects, hints, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

LWS = "leaderworkerset.sigs.k8s.io"
EXCLUSIVE_LWS = {f"{LWS}/exclusive-topology": "rack"}
JOBSET_NAME = "jobset.sigs.k8s.io/replicatedjob-name"
EXCLUSIVE_JOB = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
SELECTED = {"alpha.jobset.sigs.k8s.io/node-selector": "true"}
INDEX = "batch.kubernetes.io/job-completion-index"


def of_lws(index, size=4, **annotations):
    labels = {f"{LWS}/name": "s", f"{LWS}/group-index": "1", f"{LWS}/worker-index": str(index)}
    return hints(labels, {f"{LWS}/size": str(size)} | annotations)


def of_job(index, **annotations):
    return hints({JOBSET_NAME: "w"}, {INDEX: str(index)} | annotations, owner=JOB)


def gang_of(found):
    """Name and minimum; None: it is placed on its own."""
    return (found.name, found.minimum) if found is not None and found.key else None


FOLLOWERS = ("ns/s-1 without its leader", 3)


@pytest.mark.parametrize(
    ("pod", "expected"),
    [
        pytest.param(of_lws(0, **EXCLUSIVE_LWS), None, id="leader"),
        pytest.param(of_lws(1, **EXCLUSIVE_LWS), FOLLOWERS, id="worker"),
        pytest.param(of_lws(3, **EXCLUSIVE_LWS), FOLLOWERS, id="last-worker"),
        pytest.param(of_lws(1, 2, **EXCLUSIVE_LWS), None, id="only-worker"),
        pytest.param(of_lws(0), ("ns/s-1", 4), id="leader-without-a-domain"),
        pytest.param(of_lws(1), ("ns/s-1", 4), id="worker-without-a-domain"),
    ],
)
def test_groups_of_a_leader_worker_set_with_domains_of_their_own(pod, expected):
    assert gang_of(resolve(pod, Objects()).declaration) == expected


@pytest.mark.parametrize("named", [(), ("leaderworkersets",)])
@pytest.mark.parametrize(
    ("startup", "leader", "worker"), [("LeaderReady", None, FOLLOWERS), ("LeaderCreated", ("ns/s-1", 4), ("ns/s-1", 4))]
)
def test_workers_that_are_created_once_the_leader_is_ready(named, startup, leader, worker):
    made = owner_or_group(LEADER_WORKER_SETS, "s", spec={"leaderWorkerTemplate": {"size": 4}, "startupPolicy": startup})
    objects = Objects((LEADER_WORKER_SETS, made))
    for pod, expected in ((of_lws(0), leader), (of_lws(2), worker)):
        assert gang_of(resolve(pod, objects, conventions(named)).declaration) == expected
    objects.unknown.add((LEADER_WORKER_SETS, "ns", "s"))
    assert resolve(of_lws(0), objects, conventions(named)).unknown


def job_set(annotations=None, template=None):
    """Two Jobs of four pods each, and one of three."""
    jobs = [
        {
            "name": "w",
            "replicas": 2,
            "template": {"metadata": template or {}, "spec": {"parallelism": 4, "completions": 4}},
        },
        {"name": "d", "template": {"spec": {"parallelism": 3, "completions": 3}}},
    ]
    made = owner_or_group(JOB_SETS, "s", spec={"replicatedJobs": jobs}, annotations=annotations)
    job = owner_or_group(JOBS, "j", spec={"parallelism": 4, "completions": 4}, owner=SET)
    return Objects((JOB_SETS, made), (JOBS, job))


@pytest.mark.parametrize("kinds", [["jobsets"], ["jobs"], ["jobs", "jobsets"]])
def test_jobs_of_a_job_set_with_domains_of_their_own(kinds):
    for index, expected in ((0, None), (1, ("ns/j without its leader", 3)), (3, ("ns/j without its leader", 3))):
        found = resolve(of_job(index, **EXCLUSIVE_JOB), job_set(), conventions(kinds)).declaration
        assert gang_of(found) == expected


@pytest.mark.parametrize("level", ["pod", "jobset"])
def test_a_job_set_that_declares_a_gang(level):
    gang = {"poseidon.io/gang": "all"}
    objects = job_set(gang if level == "jobset" else None)
    extra = EXCLUSIVE_JOB | (gang if level == "pod" else {})
    assert gang_of(resolve(of_job(0, **extra), objects).declaration) is None
    assert gang_of(resolve(of_job(1, **extra), objects).declaration) == ("ns/j without its leader", 3)


def test_a_job_set_that_selects_nodes_itself_creates_all_pods_at_once():
    found = resolve(of_job(0, **EXCLUSIVE_JOB, **SELECTED), job_set(), conventions(["jobsets"])).declaration
    assert gang_of(found) == ("ns/s", 11)


def test_other_jobs_of_the_set_do_not_wait_for_those_with_domains_of_their_own():
    objects = job_set(template={"annotations": EXCLUSIVE_JOB})
    other = hints({JOBSET_NAME: "d"}, {INDEX: "0"}, owner=JOB)
    assert gang_of(resolve(other, objects, conventions(["jobsets"])).declaration) == ("ns/s", 3)
    found = resolve(of_job(1, **EXCLUSIVE_JOB), objects, conventions(["jobsets"])).declaration
    assert gang_of(found) == ("ns/j without its leader", 3)


def test_whatever_declares_the_gang():
    group = owner_or_group(COSCHEDULING, spec={"minMember": 3})
    objects = job_set()
    objects.put(COSCHEDULING, group)
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    for index, expected in ((0, None), (1, ("ns/g without its leader", 2))):
        pod = hints({JOBSET_NAME: "w"} | label, {INDEX: str(index)} | EXCLUSIVE_JOB, owner=JOB)
        assert gang_of(resolve(pod, objects).declaration) == expected
    pod = of_job(1, **EXCLUSIVE_JOB)
    objects.unknown.add("uid-j")
    with pytest.raises(Unknown):
        objects.owner(JOB, "ns")
    assert resolve(pod, objects, conventions(["jobsets"])).unknown


def test_pods_without_a_gang_are_placed_one_by_one_as_before():
    assert resolve(of_job(1, **EXCLUSIVE_JOB), job_set()).declaration is None


def test_workers_are_resolved_again_once_their_set_is_known():
    """The watch of LeaderWorkerSets may lag behind that of pods; nothing else ties the workers to their set."""
    rig = Rig()
    labels = {f"{LWS}/name": "s", f"{LWS}/group-index": "1"}
    for at in (1, 2, 3):
        rig.pod(f"p-{at}", labels=labels | {f"{LWS}/worker-index": str(at)}, annotations={f"{LWS}/size": "4"})
    assert rig.gang("p-1") == (4, "ns/s-1")
    spec = {"leaderWorkerTemplate": {"size": 4}, "startupPolicy": "LeaderReady"}
    rig.put(LEADER_WORKER_SETS, owner_or_group(LEADER_WORKER_SETS, "s", spec=spec))
    assert rig.gang("p-1") == (3, "ns/s-1 without its leader")
