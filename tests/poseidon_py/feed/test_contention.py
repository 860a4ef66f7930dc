"""Rows of pods that contend for claims with access mode ReadWriteOncePod: which, and in which order."""

import pytest

from poseidon_py.report.messages import unscheduled
from poseidon_py.state.volumes.claims import ONE_POD_CONFLICT
from poseidon_py.state.volumes.contention import tokens_of
from poseidon_py.state.volumes.gate import VolumesTakenError
from protos.gen import flow_pb2
from tests.poseidon_py.fakes import unavailable
from tests.poseidon_py.rig import Rig
from tests.poseidon_py.state.test_volumes import claim, volume

(TOKEN,) = tokens_of([("default", "c")])


def using(*claims, priority=0, **fields):
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in claims]
    return {"volumes": volumes, "priority": priority, **fields}


def one_pod_claims(rig, *names):
    rig.store.storage.ready = True
    for name in names:
        rig.store.storage.put_volume(volume(f"v-{name}"))
        rig.store.storage.put_claim(claim(name, bound_to=f"v-{name}", accessModes=["ReadWriteOncePod"]))


def sent(rig, name):
    """For each row of a pod, the tokens of its class and the nodes that it is restricted to."""
    classes = {each.id: each for update in rig.engine.updates for each in update.classes}
    rows = []
    for update in rig.engine.updates:
        for at, each in enumerate(update.tasks.name):
            if each == f"default/{name}":
                found = classes[update.tasks.class_id[at]]
                nodes = [
                    value
                    for further in found.further_affinity
                    for term in further.nodeSelectorTerms
                    for demand in term.matchFields
                    for value in demand.values
                ]
                rows.append((list(found.tokens), nodes))
    return rows


def rows_of(rig):
    """Names in all rows, in the order in which they were sent."""
    return [name.partition("/")[2] for update in rig.engine.updates for name in update.tasks.name]


@pytest.fixture
async def rig():
    async with Rig(nodes=("n", "m"), leads=False) as rig:
        one_pod_claims(rig, "c", "d")
        yield rig


async def test_a_claim_without_contention_has_no_token(rig):
    rig.pod("user", node="n", spec=using("c"))
    rig.pod("same", spec=using("c"))
    rig.pod("other", spec=using("d", priority=1))
    await rig.settle()
    assert sent(rig, "user") == [([], [])]
    assert sent(rig, "other") == [([], [])]
    assert rig.task("same") is None


async def test_an_older_pod_that_no_node_takes_does_not_hold_up_a_younger_one(rig):
    """kube-scheduler's VolumeRestrictions looks at pods on nodes alone. Nothing is said of a claim that none uses."""
    rig.pod("old", spec=using("c"))
    rig.pod("young", spec=using("c"))
    await rig.settle()
    assert rig.task("young") is None
    young = rig.store.pods["uid-young"]
    assert young.described.problem == ""
    assert ONE_POD_CONFLICT not in young.volumes.blocked
    rig.store.volumes.fits_nowhere(rig.store.pods["uid-old"])
    await rig.settle()
    assert rig.task("young") is not None
    assert rig.task("old") is not None  # it may fit later; the first of them to be placed gets the claim
    rig.store.assume(young, "n")
    old = rig.store.pods["uid-old"]
    with pytest.raises(VolumesTakenError):
        rig.store.volumes.reserve(old, "m", {})


async def test_a_pod_that_could_not_be_bound_does_not_hold_up_a_younger_one(rig):
    rig.pod("old", spec=using("c"))
    rig.pod("young", spec=using("c"))
    await rig.settle()
    rig.store.assume(rig.store.pods["uid-old"], "n")
    rig.store.release(rig.store.pods["uid-old"])
    await rig.settle()
    assert rig.task("young") is not None


async def test_the_row_of_the_user_is_sent_with_its_token_before_that_of_the_pod(rig):
    rig.pod("user", node="n", spec=using("c", "d"))
    await rig.settle()
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    assert sent(rig, "user") == [([], []), ([TOKEN], [])]
    assert sent(rig, "pending") == [([TOKEN], ["n"])]
    assert rows_of(rig) == ["user", "user", "pending"]
    assert rig.problems.blocks == [("pending", ONE_POD_CONFLICT)]


@pytest.mark.parametrize("how", ["unreachable", "stale"])
async def test_a_row_of_the_user_that_is_lost(rig, how):
    rig.store.pod_queue._first_delay = 0.0
    rig.pod("user", node="n", spec=using("c"))
    await rig.settle()
    if how == "unreachable":
        rig.engine.fail["apply"] = [unavailable("Apply")]
    elif how == "stale":
        rig.engine.restart()
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    assert sent(rig, "user")[-1] == ([TOKEN], [])
    assert sent(rig, "pending")[-1] == ([TOKEN], ["n"])
    assert rows_of(rig).index("pending") > 1


async def test_a_row_of_the_user_whose_class_is_unknown(rig):
    rig.pod("user", node="n", spec=using("c"))
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    rig.gone("pending")
    await rig.settle()
    before = len(rows_of(rig))
    rig.engine.classes.clear()
    rig.pod("pending", uid="second", spec=using("c", priority=1))
    await rig.settle()
    assert rows_of(rig)[before:].index("pending") > 1
    assert sent(rig, "user")[-1] == ([TOKEN], [])
    assert sent(rig, "pending")[-1] == ([TOKEN], ["n"])


async def test_a_resync_that_describes_the_pod_before_the_user(rig):
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    assert sent(rig, "pending") == [([], [])]
    rig.engine.restart()
    rig.pod("user", node="n", spec=using("c"))
    await rig.settle()
    assert sent(rig, "user")[-1] == ([TOKEN], [])
    assert sent(rig, "pending") == [([], []), ([TOKEN], ["n"])]
    assert rig.state("pending") == "waiting"


async def test_the_pod_may_go_anywhere_when_the_user_has_left(rig):
    rig.pod("user", node="n", spec=using("c"))
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    rig.gone("user")
    await rig.settle()
    assert sent(rig, "pending")[-1] == ([], [])


async def test_the_token_of_the_user_ends_with_the_contention(rig):
    rig.pod("user", node="n", spec=using("c"))
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    rig.gone("pending")
    await rig.settle()
    assert sent(rig, "user")[-1] == ([], [])
    rig.pod("pending", uid="second", spec=using("c", priority=1))
    await rig.settle()
    assert sent(rig, "user")[-1] == ([TOKEN], [])
    assert rig.state("pending") == "waiting"


async def test_nothing_is_sent_twice_while_pods_contend(rig):
    rig.pod("user", node="n", spec=using("c"))
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    before = rows_of(rig)
    for name in ("user", "pending"):
        rig.store.touch_pod(f"uid-{name}")
    rig.store.storage.put_claim(claim("c", bound_to="v-c", accessModes=["ReadWriteOncePod"]))
    await rig.settle()
    assert rows_of(rig) == before


async def test_two_claims_on_one_node_and_on_two(rig):
    rig.pod("first", node="n", spec=using("c"))
    rig.pod("second", node="n", spec=using("d"))
    rig.pod("pending", spec=using("c", "d", priority=1))
    await rig.settle()
    both = list(tokens_of([("default", "c"), ("default", "d")]))
    assert sent(rig, "pending") == [(both, ["n"])]
    rig.gone("second")
    rig.pod("third", node="m", spec=using("d"))
    await rig.settle()
    assert rig.task("pending") is None
    assert sent(rig, "first")[-1] == ([], [])
    rig.gone("first")
    await rig.settle()
    assert sent(rig, "pending")[-1] == (list(tokens_of([("default", "d")])), ["m"])


async def test_a_second_claim_of_the_user_does_not_hold_up_the_pod_for_the_first(rig):
    rig.pod("user", node="n", spec=using("c", "d"))
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    rig.pod("other", spec=using("d", priority=1))
    await rig.settle()
    assert rig.state("pending") == rig.state("other") == "waiting"
    assert sent(rig, "user")[-1] == (list(tokens_of([("default", "c"), ("default", "d")])), [])
    assert rows_of(rig).count("pending") == 1


async def test_the_most_important_pod_contends_then_the_oldest(rig):
    rig.pod("user", node="n", spec=using("c"))
    rig.pod("b", created="2026-01-01T00:00:02Z", spec=using("c", priority=2))
    await rig.settle()
    assert rig.state("b") == "waiting"
    rig.pod("a", created="2026-01-01T00:00:01Z", spec=using("c", priority=2))
    await rig.settle()
    assert (rig.state("a"), rig.state("b")) == ("waiting", None)
    rig.pod("c", created="2026-01-01T00:00:03Z", spec=using("c", priority=3))
    await rig.settle()
    assert (rig.state("a"), rig.state("c")) == (None, "waiting")
    rig.gone("c")
    await rig.settle()
    assert (rig.state("a"), rig.state("b")) == ("waiting", None)


async def test_a_pod_that_is_being_bound_keeps_the_claim(rig):
    rig.pod("assumed", spec=using("c"))
    await rig.settle()
    known = rig.store.pods["uid-assumed"]
    rig.store.assume(known, "n")
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    assert rig.task("pending") is None
    rig.store.release(known)
    await rig.settle()
    # more important, so that the other has to wait
    assert rig.state("pending") == "waiting"


@pytest.mark.parametrize(
    ("user", "pending"),
    [
        ({"priority": 1}, {}),
        ({"priority": 2}, {}),
        ({}, {"preemptionPolicy": "Never"}),
        ({"static": True}, {}),
        ({}, {"gang": True}),
        ({"gang": True}, {}),
    ],
)
async def test_a_pod_that_cannot_preempt_the_user_is_blocked(rig, user, pending):
    def fields(name, spec, **others):
        gang = {"pod-group.scheduling.x-k8s.io/name": name, "pod-group.scheduling.x-k8s.io/min-available": "1"}
        labels = gang if spec.pop("gang", False) else {}
        mirror = {"kubernetes.io/config.mirror": "x"} if spec.pop("static", False) else {}
        return {"labels": labels, "annotations": mirror, "spec": using("c", **(others | spec))}

    rig.pod("user", node="n", **fields("a", dict(user)))
    rig.pod("pending", **fields("b", dict(pending), priority=1))
    await rig.settle()
    assert rig.task("pending") is None
    assert rig.problems.blocks == [("pending", ONE_POD_CONFLICT)]
    assert sent(rig, "user") == [([], [])]


async def test_a_pod_that_leaves_anyway_is_no_obstacle(rig):
    """Even if it could not be a victim: the node is kept for the pod."""
    gang = {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "1"}
    rig.pod("user", node="n", labels=gang, deleting=True, spec=using("c"))
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    assert sent(rig, "pending") == [([TOKEN], ["n"])]


async def test_a_nomination_is_in_the_pod_s_row_before_and_after_the_user_leaves(rig):
    rig.pod("user", node="n", spec=using("c"))
    rig.pod("pending", spec=using("c", priority=1))
    await rig.settle()
    known = rig.store.pods["uid-pending"]
    rig.store.nominations.set(known, "n")
    await rig.settle()
    rig.gone("user")
    await rig.settle()
    nominated = [
        update.tasks.nominated[at]
        for update in rig.engine.updates
        for at, name in enumerate(update.tasks.name)
        if name == "default/pending" and update.tasks.nominated
    ]
    assert len(nominated) == 2
    assert all(nominated)


def test_all_nodes_fail_for_one_reason():
    kind = flow_pb2.Reason.Kind
    reasons = [
        flow_pb2.Reason(kind=kind.TOKEN_TAKEN, detail=TOKEN, nodes=1),
        flow_pb2.Reason(kind=kind.FURTHER_AFFINITY, detail="claim in use", nodes=2),
    ]
    assert unscheduled(3, reasons) == f"0/3 nodes are available: 3 {ONE_POD_CONFLICT}."
