"""What a workload keeps of the quota of its queue between its pods, from when it starts until it ends."""

import pytest

from poseidon_py.state.gangs.by_owner import JOB_SETS, JOBS
from poseidon_py.state.records import QueueMembership
from tests.poseidon_py.state.gangs.builders import JOB, SET, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

LABELS = {"kueue.x-k8s.io/queue-name": "lq"}
GROUP = LABELS | {"kueue.x-k8s.io/pod-group-name": "g"}
COUNT = {"kueue.x-k8s.io/pod-group-total-count": "2"}
MEMORY, QUEUE = 2**20, 5


class QueueRig(Rig):
    """All pods are in one queue of Kueue."""

    draining: frozenset[int] = frozenset()

    def __init__(self):
        super().__init__()
        self.registry.form_gangs_from((), lambda: True)
        self.registry.admissions.drains = lambda queue: queue in self.draining

    def pod(self, name, **fields):
        super().pod(name, **fields)
        if f"uid-{name}" in self.store.pods:
            self.known(name).queue = QueueMembership(QUEUE, QUEUE)
            super().pod(name, **fields)

    def keeps(self):
        """Millicores that the only gang keeps, in which queue."""
        (gang,) = self.registry.groups
        message = self.registry.message(gang)
        assert message is not None
        return message.keeps.get("cpu", 0), message.queue

    def job(self, size=2, completions=30, *, done=0, condition="", suspend=False, **fields):
        spec = {"parallelism": size, "completions": completions, "suspend": suspend}
        status = {"succeeded": done, "conditions": [{"type": condition, "status": "True"}] if condition else []}
        fields = {"labels": LABELS} | fields
        self.put(JOBS, owner_or_group(JOBS, "j", spec=spec, status=status, **fields))

    def bind(self, *names, **fields):
        for name in names:
            self.pod(name, **({"owner": JOB, "node": f"n-{name}", "cpu": "1", "phase": "Running"} | fields))


@pytest.fixture
def rig():
    return QueueRig()


def test_a_job_keeps_its_quota_from_its_start_until_its_end(rig):
    rig.job()
    rig.pod("a", owner=JOB, cpu="1")
    rig.pod("b", owner=JOB, cpu="1")
    assert rig.keeps() == (0, 0)
    rig.bind("a", "b")
    assert rig.keeps() == (2000, QUEUE)
    rig.bind("a", "b", phase="Succeeded")
    rig.job(done=2)
    assert rig.keeps() == (2000, QUEUE)
    rig.job(done=29)
    assert rig.keeps() == (1000, QUEUE), "one pod is left"
    rig.job(done=30)
    assert rig.keeps() == (0, QUEUE)
    rig.job(done=30, condition="Complete")
    assert rig.keeps() == (0, 0)


@pytest.mark.parametrize("end", [{"condition": "Failed"}, {"suspend": True}])
@pytest.mark.parametrize("running", [True, False])
def test_it_keeps_nothing_once_it_has_failed_or_is_suspended(rig, end, running):
    rig.job()
    rig.bind("a", "b")
    if not running:
        rig.bind("a", "b", phase="Failed")
    assert rig.keeps() == (2000, QUEUE)
    rig.job(**end)
    assert rig.keeps() == (0, 0)


def test_a_workload_whose_pods_are_all_preempted_keeps_nothing(rig):
    rig.job()
    rig.bind("a", "b")
    for name in "ab":
        rig.known(name).preempting = True
        rig.bind(name)
    assert rig.keeps() == (0, 0)
    rig.gone("a")
    rig.gone("b")
    rig.pod("c", owner=JOB, cpu="1")
    rig.pod("d", owner=JOB, cpu="1")
    assert rig.keeps() == (0, 0), "it waits in its queue again"
    rig.bind("c", "d")
    assert rig.keeps() == (2000, QUEUE)


def test_one_pod_that_is_evicted_is_replaced_within_the_quota(rig):
    rig.job()
    rig.bind("a", "b")
    rig.bind("a", deleting=True)
    rig.gone("a")
    assert rig.keeps() == (2000, QUEUE)


def test_after_a_restart_a_pod_that_is_bound_tells_that_the_workload_has_started(rig):
    rig.job()
    rig.pod("b", owner=JOB, cpu="1")
    rig.bind("a")
    assert rig.keeps() == (2000, QUEUE)
    rig.bind("a", deleting=True)
    assert rig.keeps() == (0, 0), "it was never seen complete"


def test_a_queue_that_drains_leaves_nothing(rig):
    rig.job()
    rig.bind("a", "b")
    rig.draining = frozenset((QUEUE,))
    rig.bind("a", phase="Failed")
    assert rig.keeps() == (0, 0)


def test_the_minimum_of_a_job_is_what_it_keeps(rig):
    rig.job(4, annotations={"kueue.x-k8s.io/job-min-parallelism": "2"})
    rig.bind("a", "b", "c", "d")
    assert rig.keeps() == (2000, QUEUE)


def test_a_pod_group_keeps_what_its_pods_lack_that_have_not_succeeded(rig):
    fields = {"labels": GROUP, "annotations": COUNT, "owner": None}
    rig.bind("a", "b", **fields)
    assert rig.keeps() == (2000, QUEUE)
    rig.bind("a", phase="Failed", **fields)
    assert rig.keeps() == (2000, QUEUE)
    rig.bind("b", phase="Succeeded", **fields)
    assert rig.keeps() == (1000, QUEUE)


def test_an_ordinary_gang_keeps_nothing(rig):
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2}, annotations={"poseidon.io/gang": "2"}))
    rig.bind("a", "b")
    assert rig.keeps() == (0, 0)


def test_parts_of_a_job_set_that_start_in_turn_keep_nothing(rig):
    """A part that has ended would keep what the next one needs; Kueue admits all parts at once."""
    jobs = [{"name": name, "replicas": 1, "template": {"spec": {"parallelism": 2}}} for name in ("x", "y")]
    spec = {"replicatedJobs": jobs, "startupPolicy": {"startupPolicyOrder": "InOrder"}}
    rig.put(JOB_SETS, owner_or_group(JOB_SETS, "s", spec=spec, labels=LABELS))
    rig.put(JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2}, owner=SET))
    rig.bind("a", "b", labels={"jobset.sigs.k8s.io/replicatedjob-name": "x"})
    assert rig.keeps() == (0, 0)
