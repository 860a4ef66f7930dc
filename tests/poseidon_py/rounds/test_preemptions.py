"""Decisions of a round that can be carried out are passed on; the rows of the others are sent again."""

import pytest

from poseidon_py.preempt.decisions import Decisions, MigratingPod, NominatedPod, VictimPod
from poseidon_py.rounds.preemptions import decisions_of
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.builders import node, pod
from tests.poseidon_py.rig import Rig


@pytest.fixture
def store():
    store = Store(["poseidon"])
    store.observe_node(node("n"))
    store.observe_node(node("m"))
    store.observe_pod(pod("v", node="n"))
    store.observe_pod(pod("p"))
    store.pods["uid-v"].described.movable = True
    return store


def reply_of(store, *, victims=(), nominated=(), unnominated=(), migrated=()):
    """`victims`: pairs of UIDs, `nominated` and `migrated`: pairs of UID and node id."""
    tasks = {uid: known.task for uid, known in store.pods.items()}
    reply = flow_pb2.RoundReply(round=1)
    for victim, preemptor in victims:
        reply.preempted.task_uid.append(tasks.get(victim, 7))
        reply.preempted.preemptor_uid.append(tasks.get(preemptor, 8))
    for message, pairs in ((reply.nominated, nominated), (reply.migrated, migrated)):
        for uid, node_id in pairs:
            message.task_uid.append(tasks.get(uid, 9))
            message.node.append(len(message.nodes))
            message.nodes.append(node_id)
    reply.unnominated.extend(tasks.get(uid, 9) for uid in unnominated)
    return reply


def read(store, *, leads=True, **reply):
    return decisions_of(store, reply_of(store, **reply), lambda known: leads and known.schedulable, leads=leads)


def resent(store):
    return {known.name for known in store.pods.values() if known.resend and known.dirty}


def test_decisions_are_passed_on_and_confirmed_by_rows(store):
    n, victim, pending = store.id_of_node("n"), store.pods["uid-v"], store.pods["uid-p"]
    decisions = read(store, victims=[("uid-v", "uid-p")], nominated=[("uid-p", n)])
    assert decisions == Decisions([NominatedPod(pending, "n")], [VictimPod(victim, pending)], [])
    assert resent(store) == {"v", "p"}
    assert read(store, unnominated=["uid-p"]) == Decisions([], [], [pending])


def test_unknown_pods_are_skipped(store):
    n = store.id_of_node("n")
    decisions = read(store, victims=[("x", "uid-p")], nominated=[("x", n)], unnominated=["x"])
    assert not decisions
    assert resent(store) == set()


@pytest.mark.parametrize("waits", [True, False])
def test_a_victim_that_is_being_bound_can_only_go_while_its_bind_waits(store, waits):
    store.observe_pod(pod("w"))
    store.assume(store.pods["uid-w"], "n")
    store.set_revocable(store.pods["uid-w"], waits)
    decisions = read(store, victims=[("uid-w", "uid-p")])
    assert [victim.known.name for victim in decisions.victims] == ["w"] * waits
    assert resent(store) == {"w"}


@pytest.mark.parametrize("why", ["not bound", "being deleted", "decided before", "preemptor gone", "preemptor bound"])
def test_a_victim_that_cannot_or_need_not_go_is_skipped(store, why):
    match why:
        case "not bound":
            store.observe_pod(pod("v"))
        case "being deleted":
            store.observe_pod(pod("v", node="n", deleting=True))
        case "decided before":
            store.pods["uid-v"].preempting = True
        case "preemptor gone":
            store.remove_pod("uid-p")
        case "preemptor bound":
            store.observe_pod(pod("p", node="n"))
    assert not read(store, victims=[("uid-v", "uid-p")]).victims
    assert "v" in resent(store)


@pytest.mark.parametrize("why", ["node gone", "gated", "bound"])
def test_a_nomination_that_cannot_hold_ends(store, why):
    n, known = store.id_of_node("n"), store.pods["uid-p"]
    if why == "node gone":
        store.remove_node("n")
    else:
        store.observe_pod(pod("p", gates=why == "gated", node="n" if why == "bound" else ""))
    decisions = read(store, nominated=[("uid-p", n)])
    assert decisions == Decisions([], [], [known])
    assert "p" in resent(store)


def test_a_nomination_that_ended_with_its_node_is_written_by_the_leader(store):
    known = store.pods["uid-p"]
    store.nominations.set(known, "n")
    store.remove_node("n")
    assert not read(store, leads=False)
    assert read(store) == Decisions([], [], [known])
    assert not read(store)


def test_without_leadership_everything_is_undone(store):
    n = store.id_of_node("n")
    assert not read(store, leads=False, victims=[("uid-v", "uid-p")], nominated=[("uid-p", n)])
    assert resent(store) == {"v", "p"}


# -- migration --------------------------------------------------------------------------------------------------------


def migrations(store):
    """Number of migrations by outcome."""
    samples = [sample for metric in store.metrics.migrations.collect() for sample in metric.samples]
    return {s.labels["outcome"]: s.value for s in samples if s.name.endswith("_total") and s.value}


def test_migrations_are_passed_on_and_confirmed_by_rows(store):
    store.observe_pod(pod("w", node="n"))
    store.pods["uid-w"].described.movable = True
    decisions = read(store, migrated=[("uid-v", store.id_of_node("m")), ("uid-w", store.id_of_node("m"))])
    assert decisions
    assert decisions == Decisions(migrations=[MigratingPod(store.pods[uid], "m") for uid in ("uid-v", "uid-w")])
    assert resent(store) == {"v", "w"}
    assert migrations(store) == {}


def test_an_unknown_pod_does_not_migrate(store):
    assert not read(store, migrated=[("x", store.id_of_node("m"))])
    assert resent(store) == set()


@pytest.mark.parametrize(
    ("why", "dropped"),
    [
        ("not bound", 0),
        ("being deleted", 0),
        ("a victim already", 0),
        ("decided before", 0),
        ("there already", 1),
        ("target removed", 1),
        ("opted out", 1),
        ("refused before", 1),
        ("in a gang", 1),
        ("not leading", 0),
    ],
)
def test_a_pod_that_cannot_or_need_not_migrate_stays(store, why, dropped):
    known, m = store.pods["uid-v"], store.id_of_node("m")
    match why:
        case "not bound":
            store.observe_pod(pod("v"))
        case "being deleted":
            store.observe_pod(pod("v", node="n", deleting=True))
        case "a victim already":
            known.preempting = True
        case "decided before":
            known.migrating = True
        case "there already":
            store.observe_pod(pod("v", node="m"))
        case "target removed":
            store.remove_node("m")
        case "opted out":
            known.described.movable = False
        case "refused before":
            known.migration_refused = True
        case "in a gang":
            known.gang.id = 5
    assert not read(store, leads=why != "not leading", migrated=[("uid-v", m)])
    assert resent(store) == {"v"}
    assert migrations(store) == ({"dropped": 1} if dropped else {})


# -- the loop ---------------------------------------------------------------------------------------------------------


async def test_the_loop_passes_decisions_on_before_it_acknowledges(caplog):
    caplog.set_level("INFO")
    seen = []
    async with Rig(cpu="1") as rig:
        rig.pod("v", node="n", cpu="1")
        rig.pod("p", cpu="1")
        await rig.settle()
        reply = reply_of(rig.store, victims=[("uid-v", "uid-p")], nominated=[("uid-p", rig.store.id_of_node("n"))])
        reply.round, reply.stats.preempted, reply.stats.waiting = rig.engine.rounds + 1, 1, 1
        reply.stats.migrated = 2
        rig.engine.rounds, rig.engine.last = reply.round, reply
        rig.loop._preempt = lambda decisions: seen.append((decisions, rig.loop._acknowledged))
        acknowledged = rig.loop._acknowledged
        rig.changed.set()
        await rig.settle()
    ((decisions, at),) = seen
    assert [(victim.known.name, victim.preemptor.name) for victim in decisions.victims] == [("v", "p")]
    assert at == acknowledged != rig.loop._acknowledged
    assert "round placed=0 waiting=1 preempted=1 migrated=2 ms=" in caplog.text


async def test_a_nominated_pod_that_is_blocked_loses_its_nomination():
    written = []
    async with Rig(cpu="1") as rig:
        rig.pod("v", node="n", cpu="1")
        rig.pod("p", cpu="1")
        await rig.settle()
        known = rig.store.pods["uid-p"]
        rig.store.nominations.set(known, "n")
        await rig.settle()
        assert rig.engine.updates[-1].tasks.nominated == [1]
        rig.loop._preempt = lambda decisions: written.extend(decisions.unnominated)
        known.gang.blocked = "its gang is invalid"
        rig.store.touch_pod("uid-p")
        await rig.settle()
        assert rig.task("p") is None
        assert known.nominated == ""
        assert written == [known]
