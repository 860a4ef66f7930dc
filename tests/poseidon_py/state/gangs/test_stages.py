"""A workload some of whose pods are created only when others run asks for the quota of all, as in Kueue, where it is
one Workload: two JobSets in order held each other's quota for ever, and so did the leaders of LeaderWorkerSets."""

import pytest

from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.gangs.model import Owner
from poseidon_py.state.gangs.owner_kinds import LEADER_WORKER_SETS
from tests.poseidon_py.state.gangs.builders import SET, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig
from tests.poseidon_py.state.gangs.test_admissions import LABELS, QUEUE, QueueRig

JOBSET = "jobset.sigs.k8s.io/replicatedjob-name"
EXCLUSIVE = {"alpha.jobset.sigs.k8s.io/exclusive-topology": "rack"}
LWS = "leaderworkerset.sigs.k8s.io"


@pytest.fixture
def rig():
    return QueueRig()


def template(cpu="1", where="requests"):
    return {"spec": {"containers": [{"name": "c", "resources": {where: {"cpu": cpu}}}]}}


def part(name, pods, *, replicas=1, annotations=None, where="requests", **fields):
    spec = {"parallelism": pods, "completions": pods, "template": template(where=where)}
    return {
        "name": name,
        "replicas": replicas,
        "template": {"metadata": {"annotations": annotations}, "spec": spec},
        **fields,
    }


def jobs_of(rig, **sizes):
    for name, size in sizes.items():
        rig.put(JOBS, owner_or_group(JOBS, name.replace("_", "-"), spec={"parallelism": size}, owner=SET))


def pod(rig, name, role, job, **fields):
    owner = Owner("Job", job, f"uid-{job}", "batch")
    rig.pod(name, labels={JOBSET: role}, owner=owner, **({"cpu": "1"} | fields))


def in_order(rig, *, done=0, where="requests", **fields):
    parts = part("lead", 1, where=where), part("work", 3, where=where)
    spec = {"replicatedJobs": list(parts), "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    status = {"replicatedJobsStatus": [{"name": "lead", "succeeded": done}]}
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=spec, status=status, labels=LABELS, **fields))
    jobs_of(rig, s_lead_0=1, s_work_0=3)


def asks(rig, name):
    """Minimum, minimums of roles, millicores of its quota, and whether it has yet to start."""
    message = rig.message(name)
    assert message.queue == QUEUE
    return message.minimum, {each.name: each.minimum for each in message.roles}, message.keeps["cpu"], message.staged


@pytest.mark.parametrize("where", ["requests", "limits"])
def test_a_jobset_in_order_asks_for_all_of_its_quota_and_keeps_it(rig, where):
    in_order(rig, where=where)
    pod(rig, "l", "lead", "s-lead-0")
    assert asks(rig, "l") == (1, {"lead": 1, "work": 0}, 4000, True)
    assert rig.message("l").keeps["pods"] == 4
    pod(rig, "l", "lead", "s-lead-0", node="n", phase="Running")
    assert asks(rig, "l") == (1, {"lead": 1, "work": 0}, 4000, False)
    pod(rig, "w0", "work", "s-work-0")
    assert asks(rig, "w0") == (4, {"lead": 1, "work": 3}, 4000, False), "two more are needed"
    for name in ("w1", "w2"):
        pod(rig, name, "work", "s-work-0")
    assert rig.below == rig.halves == [], "it lost none"
    for name in ("w0", "w1", "w2"):
        pod(rig, name, "work", "s-work-0", node="n", phase="Running")
    pod(rig, "l", "lead", "s-lead-0", node="n", phase="Succeeded")
    in_order(rig, done=1)
    assert asks(rig, "w0") == (3, {"lead": 0, "work": 3}, 3000, False)


def test_parts_that_depend_on_others_alike(rig):
    parts = part("init", 1), part("work", 2, dependsOn=[{"name": "init", "status": "Complete"}])
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec={"replicatedJobs": list(parts)}, labels=LABELS))
    jobs_of(rig, s_init_0=1)
    pod(rig, "i", "init", "s-init-0")
    assert asks(rig, "i") == (1, {"init": 1, "work": 0}, 3000, True)


def test_pods_of_a_part_that_have_succeeded_are_not_needed(rig):
    in_order(rig)
    for name in ("w0", "w1", "w2"):
        pod(rig, name, "work", "s-work-0", node="n", phase="Running")
    pod(rig, "w0", "work", "s-work-0", node="n", phase="Succeeded")
    spec, status = {"parallelism": 3, "completions": 3}, {"succeeded": 1}
    rig.put(JOBS, owner_or_group(JOBS, "s-work-0", spec=spec, status=status, owner=SET))
    assert rig.message("w1").minimum == 2


def test_a_part_that_loses_a_pod_says_so(rig):
    in_order(rig)
    pod(rig, "l", "lead", "s-lead-0", node="n", phase="Running")
    rig.gone("l")
    assert rig.below == [("ns/s", 0)]


@pytest.mark.parametrize("of_set", [True, False])
def test_leaders_of_exclusive_jobs_ask_for_the_quota_of_all_jobs(rig, of_set):
    """One leader is needed to start: there may be fewer domains than Jobs, and Kueue admits the set all the same."""
    spec = {"replicatedJobs": [part("w", 3, replicas=2, annotations=None if of_set else EXCLUSIVE)]}
    annotations = EXCLUSIVE if of_set else None
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=spec, labels=LABELS, annotations=annotations))
    jobs_of(rig, s_w_0=3, s_w_1=3)
    index = "batch.kubernetes.io/job-completion-index"
    for job in (0, 1):
        pod(rig, f"l{job}", "w", f"s-w-{job}", annotations=EXCLUSIVE | {index: "0"})
    assert asks(rig, "l1") == (1, {"w": 1, "w/0": 0, "w/1": 0}, 6000, True)
    pod(rig, "l1", "w", "s-w-1", annotations=EXCLUSIVE | {index: "0"}, node="n", phase="Running")
    pod(rig, "f", "w", "s-w-1", annotations=EXCLUSIVE | {index: "1"})
    assert asks(rig, "f") == (3, {"w": 1, "w/0": 0, "w/1": 2}, 6000, False)


@pytest.mark.parametrize("exclusive", [False, True])
def test_a_replica_of_a_leader_worker_set_asks_for_the_quota_of_its_workers(rig, exclusive):
    pods = {"size": 3, "leaderTemplate": template("2"), "workerTemplate": template()}
    spec = {"leaderWorkerTemplate": pods, "startupPolicy": "LeaderCreated" if exclusive else "LeaderReady"}
    rig.put(LEADER_WORKER_SETS, owner_or_group(LEADER_WORKER_SETS, "s", spec=spec, labels=LABELS))
    domain = {f"{LWS}/exclusive-topology": "rack"} if exclusive else {}

    def member(index, **fields):
        labels = {f"{LWS}/name": "s", f"{LWS}/group-index": "1", f"{LWS}/worker-index": str(index)}
        rig.pod(f"p{index}", labels=labels, annotations={f"{LWS}/size": "3"} | domain, cpu="1", **fields)

    member(0)
    assert asks(rig, "p0") == (1, {"leader": 1, "worker": 0}, 4000, True)
    member(0, node="n", phase="Running")
    member(1)
    assert asks(rig, "p1") == (3, {"leader": 1, "worker": 2}, 4000, False)


@pytest.mark.parametrize("named", [(), ("leaderworkersets",)])
def test_replicas_of_one_second_come_in_the_order_of_their_indexes(named):
    """In that order their set makes them, and removes the last first. The order was that of hashes."""
    rig = Rig()
    rig.registry.form_gangs_from(named)
    spec = {"leaderWorkerTemplate": {"size": 2, "workerTemplate": template()}}
    rig.put(LEADER_WORKER_SETS, owner_or_group(LEADER_WORKER_SETS, "s", spec=spec))
    for at in range(12):
        labels = {f"{LWS}/name": "s", f"{LWS}/group-index": str(at), f"{LWS}/worker-index": "0"}
        rig.pod(f"p{at}", labels=labels, annotations={} if named else {f"{LWS}/size": "2"})
    ages = [rig.message(f"p{at}").created_us for at in range(12)]
    assert ages == list(range(ages[0], ages[0] + 12))
    assert len({age // 1_000_000 for age in ages}) == 1


def test_a_leader_in_no_queue_is_placed_on_its_own(rig):
    spec = {"leaderWorkerTemplate": {"size": 3, "workerTemplate": template()}, "startupPolicy": "LeaderReady"}
    rig.put(LEADER_WORKER_SETS, owner_or_group(LEADER_WORKER_SETS, "s", spec=spec))
    labels = {f"{LWS}/name": "s", f"{LWS}/group-index": "1", f"{LWS}/worker-index": "0"}
    rig.pod("p0", labels=labels, annotations={f"{LWS}/size": "3"})
    assert rig.gang("p0") is None


def test_parts_whose_requests_cannot_be_read_are_gangs_of_their_own(rig):
    in_order(rig, where="requests")
    work = part("work", 3)
    work["template"]["spec"]["template"] = {"spec": {"containers": []}}
    spec = {"replicatedJobs": [part("lead", 1), work], "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=spec, labels=LABELS))
    pod(rig, "w0", "work", "s-work-0")
    assert rig.gang("w0") == (3, "ns/s-work")
