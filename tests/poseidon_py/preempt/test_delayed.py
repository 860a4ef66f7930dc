"""Delayed preemption: evictions are announced; victims run until then, and stay if they need not leave any more."""

import asyncio

import pytest

from poseidon_py.describe.annotations.class_terms import ClassTerms
from poseidon_py.describe.annotations.preemption_terms import Announcement
from poseidon_py.kube.client import ApiError, UnreachableError
from poseidon_py.preempt.announcements import announcements
from poseidon_py.preempt.decisions import VictimPod
from poseidon_py.state.preemption.preemption_rules import PreemptionRules
from tests.poseidon_py.preempt.bench import NOW, Bench
from tests.poseidon_py.settling import settle

AWAY = UnreachableError("no route")
FORBIDDEN = ApiError(403, "Forbidden", "pods is forbidden")
NOTICE = 30.0
AT = "2026-01-01T00:00:30Z"
WILL_EVICTED = {
    "poseidon.io/preemption-state": "WillEvicted",
    "poseidon.io/eviction-time": AT,
    "poseidon.io/preempted-by": "default/p",
}
PRIVILEGED = {"poseidon.io/preemption-state": "Privileged"}


async def announced(**fields):
    """A bench on which the eviction of `v` has been announced; time stands still."""
    bench = Bench(notice=NOTICE, **fields)
    bench.asleep = asyncio.Event()
    await bench.preempt()
    return bench


async def elapse(bench, seconds):
    """Time goes on, and all that sleep wake up."""
    bench.clock += seconds
    asleep, bench.asleep = bench.asleep, asyncio.Event()
    asleep.set()
    await settle()


async def test_a_victim_is_told_and_keeps_running_and_its_preemptor_is_privileged():
    bench = await announced()
    assert bench.api.of("delete") == bench.api.of("mark") == []
    assert bench.api.pods["v"]["annotations"] == WILL_EVICTED
    condition = bench.api.pods["v"]["condition"]
    assert (condition["type"], condition["status"]) == ("poseidon.io/WillEvicted", "True")
    assert condition["message"] == f"poseidon: will be evicted at {AT} for pod default/p"
    assert bench.api.pods["p"]["annotations"] == PRIVILEGED
    assert bench.api.pods["p"]["state"] == ["True"]
    assert bench.api.pods["p"]["nominated"] == "n"
    assert bench.reports.announcements == [("v", AT, "default/p")]
    assert bench.reports.preemptions == []
    assert bench.known("v").leaving
    assert bench.known("p").privileged


async def test_it_is_deleted_at_its_time_and_not_before():
    bench = await announced()
    await elapse(bench, 29)
    assert bench.api.of("delete") == []
    await elapse(bench, 1)
    assert [kind for kind, name, _ in bench.api.requests if name == "v"] == ["announce", "mark", "delete"]
    assert bench.reports.preemptions == [("v", "p", "n")]
    assert bench.outcomes() == {"deleted": 1}


async def test_without_a_notice_nothing_is_announced():
    bench = Bench()
    await bench.preempt()
    assert [kind for kind, name, _ in bench.api.requests if name == "v"] == ["mark", "delete"]
    assert bench.api.pods["p"]["annotations"] == {}
    assert not bench.known("p").privileged


def gone(bench):
    bench.store.remove_pod("uid-p")


def placed_elsewhere(bench):
    bench.observe("p", node="m")


def nomination_ends(bench):
    bench.take(unnominated=["p"])


def nominated_elsewhere(bench):
    bench.take(nominated=[("p", "m")])


def protected(bench):
    terms = bench.known("v").described
    terms.preemption = terms.preemption._replace(preemptible=False)


def exempt(bench, *, above=1):
    """Its class says so, of preemptors that are not `above` or more."""
    victim, preemptor = (bench.known(name).described for name in "vp")
    victim.class_terms = ClassTerms(least=preemptor.priority + above, seconds=-1)


@pytest.mark.parametrize("why", [gone, placed_elsewhere, nomination_ends, nominated_elsewhere, protected, exempt])
async def test_a_victim_that_need_not_leave_keeps_running(why):
    bench = await announced()
    why(bench)
    await settle()
    await elapse(bench, 1)
    await settle()
    assert bench.api.pods["v"]["annotations"] == {}
    condition = bench.api.pods["v"]["condition"]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "poseidon.io/WillEvicted",
        "False",
        "Cancelled",
    )
    assert bench.reports.retracted_pods == ["v"]
    assert not bench.known("v").leaving
    await elapse(bench, 60)
    assert bench.api.of("delete") == bench.api.of("mark") == []
    assert bench.outcomes() == {"dropped": 1}
    assert bench.idle


async def test_a_victim_that_is_exempt_from_others_than_its_preemptor_leaves():
    bench = await announced()
    exempt(bench, above=0)
    await settle()
    await elapse(bench, 30)
    assert bench.reports.preemptions == [("v", "p", "n")]


async def test_a_preemptor_that_is_placed_is_privileged_no_more():
    bench = await announced()
    bench.observe("p", node="n")
    await settle()
    assert bench.api.pods["p"]["annotations"] == {}
    assert not bench.known("p").privileged


@pytest.mark.parametrize("end", ["bound", "removed"])
async def test_a_preemptor_that_is_placed_before_the_answer_is_privileged_no_more(end):
    bench = Bench(notice=NOTICE)
    bench.asleep = asyncio.Event()
    bench.api.hold = asyncio.Event()
    await bench.preempt()
    if end == "bound":
        bench.observe("p", node="n")
    else:
        bench.store.remove_pod("uid-p")
    bench.api.hold.set()
    await settle()
    assert bench.api.pods["p"]["annotations"] == ({} if end == "bound" else PRIVILEGED)
    assert bench.api.of("retract") == (["p"] if end == "bound" else [])
    if end == "bound":
        assert bench.api.pods["p"]["condition"]["reason"] == "Placed"
    assert not bench.preemptor.nominator.tasks


async def test_a_preemptor_whose_nomination_ends_is_privileged_no_more():
    bench = await announced()
    bench.take(unnominated=["p"])
    await settle()
    assert bench.api.pods["p"]["annotations"] == {}
    assert bench.api.pods["p"]["state"] == ["False"]


async def test_a_victim_stays_while_its_preemptor_is_being_bound():
    bench = await announced()
    assert bench.store.assume(bench.known("p"), "m")
    await elapse(bench, 31)
    assert bench.api.of("delete") == []
    assert bench.sleeps == [1.0, 1.0], "no time left, but it is not checked again without a pause"
    bench.store.release(bench.known("p"))
    await elapse(bench, 1)
    assert bench.api.of("delete") == ["v"]


async def test_a_victim_that_ends_by_itself_is_gone():
    bench = await announced()
    bench.store.remove_pod("uid-v")
    await elapse(bench, 60)
    assert bench.outcomes() == {"gone": 1}
    assert bench.api.of("delete") == bench.api.of("retract") == []
    assert bench.known("p").privileged  # until it is placed


async def test_an_announcement_that_is_not_written_is_repeated_and_the_victim_waits_for_it():
    bench = Bench(notice=NOTICE)
    bench.api.only, bench.api.faults = "announce", [AWAY] * 3
    await bench.preempt()
    assert bench.api.of("announce") == ["v"] * 4
    assert bench.api.of("delete") == ["v"]
    assert round(bench.clock, 3) >= NOTICE


async def test_a_victim_whose_announcement_is_refused_is_not_evicted():
    bench = Bench(notice=NOTICE)
    bench.api.only, bench.api.faults = "announce", [FORBIDDEN]
    await bench.preempt()
    assert bench.outcomes() == {"refused": 1}
    assert bench.api.of("delete") == bench.api.of("mark") == []
    assert bench.known("v").announced is None
    assert [name for name, _, _ in bench.rejected] == ["p"]


# -- the next leader ------------------------------------------------------------------------------------------


def successor(bench, *, there=True):
    """Another process, before it leads: it knows what the API server has. `there`: whether `p` is."""
    after = Bench(notice=NOTICE, api=bench.api)
    after.clock, after.asleep = bench.clock, asyncio.Event()
    after.preemptor.halt()
    after.observe("v", node="n", annotations=bench.api.pods["v"]["annotations"])
    if there:
        nominated = {"nominatedNodeName": bench.api.pods["p"]["nominated"]}
        after.observe("p", annotations=bench.api.pods["p"]["annotations"], status=nominated)
    return after


async def test_a_standby_knows_which_pods_will_leave():
    bench = await announced()
    after = successor(bench)
    assert after.known("v").leaving
    assert after.known("p").privileged
    after.observe("v", node="n")
    after.observe("p")
    assert not after.known("v").leaving
    assert not after.known("p").privileged


@pytest.mark.parametrize("leads_first", [True, False])
async def test_the_next_leader_evicts_at_the_announced_time(leads_first):
    bench = await announced()
    bench.preemptor.halt()
    await elapse(bench, 60)
    assert bench.api.of("delete") == bench.api.of("retract") == []
    bench.clock = 10.0
    after = successor(bench)
    if leads_first:
        after.preemptor.resume()
    after.store.pods_listed({"uid-v", "uid-p"})
    after.preemptor.resume()
    await settle()
    assert after.known("v").announced == Announcement(int(NOW + 30) * 1_000_000, "default/p")
    await elapse(after, 19)
    assert after.api.of("delete") == []
    await elapse(after, 1)
    assert after.api.of("announce") == ["v"]  # the first leader's
    assert after.api.of("delete") == ["v"]
    assert after.outcomes() == {"deleted": 1}


@pytest.mark.parametrize("there", [True, False])
async def test_the_next_leader_retracts_what_no_pod_needs(there):
    bench = await announced()
    bench.preemptor.halt()
    bench.api.pods["p"]["nominated"] = ""
    after = successor(bench, there=there)
    after.store.pods_listed({"uid-v", "uid-p"})
    after.preemptor.resume()
    await settle()
    await elapse(after, 1)
    assert after.api.pods["v"]["annotations"] == {}
    assert not after.known("v").leaving
    assert after.api.of("delete") == []


async def test_a_leader_that_leads_again_goes_on():
    bench = await announced()
    bench.preemptor.halt()
    await settle()
    assert bench.known("v").leaving
    bench.observe("v", node="n", annotations=bench.api.pods["v"]["annotations"])
    bench.store.pods_listed({"uid-v", "uid-p"})
    bench.preemptor.resume()
    await elapse(bench, 30)
    assert bench.api.of("delete") == ["v"]


async def test_the_leader_does_not_follow_the_echo_of_a_retracted_announcement():
    bench = await announced()
    bench.store.pods_listed({"uid-v", "uid-p"})
    bench.preemptor.resume()
    annotations = dict(bench.api.pods["v"]["annotations"])
    bench.store.remove_pod("uid-p")
    await settle()
    bench.observe("v", node="n", annotations=annotations)
    assert not bench.known("v").leaving


# -- which notice ---------------------------------------------------------------------------------------------


def with_notice(bench, name, seconds):
    described = bench.known(name).described
    described.preemption = described.preemption._replace(notice=seconds)
    return bench.known(name)


async def test_victims_that_share_a_preemptor_leave_together_after_the_longest_notice():
    bench = Bench()
    for name in "wxy":
        bench.bound(name)
    for name in "qr":
        bench.pending(name)
    v, w, x, y = (with_notice(bench, name, seconds) for name, seconds in zip("vwxy", (10, 20, 0, 5), strict=True))
    p, q, r = (bench.known(name) for name in "pqr")
    pairs = [(v, p), (w, p), (x, q), (y, r)]
    found = announcements(PreemptionRules(), [VictimPod(*pair) for pair in pairs], NOW, {})
    assert {uid: (each.eviction_us - NOW * 1e6) / 1e6 for uid, each in found.items()} == {
        "uid-v": 20,
        "uid-w": 20,
        "uid-y": 5,
    }
    for each in (p, q):
        each.gang.id = 7  # members of one gang preempt together
    together = announcements(PreemptionRules(), [VictimPod(*pair) for pair in pairs], NOW, {})
    assert {uid: (each.eviction_us - NOW * 1e6) / 1e6 for uid, each in together.items()} == {
        "uid-v": 20,
        "uid-w": 20,
        "uid-x": 20,
        "uid-y": 5,
    }


@pytest.mark.parametrize(
    ("own", "of_queue", "expected"),
    [(None, None, 30), (None, 5.0, 5), (None, 0.0, 0), (10.0, 5.0, 10), (0.0, 5.0, 0), (9999.0, None, 3600)],
)
def test_a_pods_own_notice_counts_first_then_its_queues(own, of_queue, expected):
    bench = Bench()
    known = with_notice(bench, "v", own)
    known.queue = type(known.queue)(notice=of_queue)
    assert PreemptionRules(notice=30.0).notice_of(known) == expected


@pytest.mark.parametrize(
    ("own", "queue", "protected", "expected"),
    [
        (None, True, False, True),
        (None, False, False, False),
        (None, True, True, False),
        (True, False, True, True),
        (False, True, False, False),
    ],
)
def test_a_pods_own_word_counts_first_then_its_queues_and_its_class(own, queue, protected, expected):
    bench = Bench()
    known = bench.known("v")
    known.described.preemption = known.described.preemption._replace(preemptible=own)
    known.described.class_terms = ClassTerms((not protected, None))
    known.queue = type(known.queue)(preemptible=queue)
    assert PreemptionRules().preemptible(known) is expected
