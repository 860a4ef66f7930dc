"""The bridge with a flow service that restarts, rejects calls, and loses state and replies."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.describe.data_inputs import DATA_ANNOTATION
from poseidon_py.feed.client import EngineError
from tests.effort import examples
from tests.poseidon_py.builders import node, pod
from tests.poseidon_py.fakes import unavailable
from tests.poseidon_py.rig import Rig


async def test_a_restarted_service_is_resynchronised_and_no_pod_is_bound_twice():
    async with Rig(cpu="100", pods="100") as rig:
        for number in range(5):
            rig.pod(f"p{number}")
        await rig.settle()
        rig.engine.restart()
        rig.pod("new")
        await rig.settle()
        assert rig.engine.calls["resync"] == 2
        assert sorted(rig.bound) == ["new", "p0", "p1", "p2", "p3", "p4"]
        assert rig.agrees()


async def test_a_resync_sends_binds_in_flight_as_done():
    async with Rig(cpu="1") as rig:
        await rig.bind_in_flight("a", cpu="1")
        rig.engine.restart()
        rig.pod("b", cpu="1")
        await rig.settle()
        assert rig.engine.calls["resync"] == 2
        await rig.answered()
        assert rig.bound == ["a"]
        assert rig.agrees()


async def test_an_update_of_a_pod_keeps_a_bind_that_was_sent_as_done():
    async with Rig(cpu="1") as rig:
        await rig.bind_in_flight("a", cpu="1")
        rig.engine.restart()
        rig.changed.set()
        await rig.settle()
        rig.store.observe_pod(pod("a", cpu="1"))  # a label, say
        await rig.settle()
        assert rig.state("a") == "bound"
        await rig.answered()
        assert rig.kube.asked == ["a"]


async def test_a_resync_does_not_begin_while_a_call_is_in_flight():
    async with Rig() as rig:
        apply, going = rig.engine.apply, asyncio.Event()

        async def slow(update):
            await going.wait()
            return await apply(update)

        rig.engine.apply = slow
        rig.pod("a")
        await rig.settle()
        rig.session.stale(rig.session.epoch)
        await rig.settle()
        assert rig.engine.calls["resync"] == 1
        going.set()
        await rig.settle()
        assert rig.engine.calls["resync"] == 2
        assert rig.bound == ["a"]


async def test_deleted_pods_and_nodes_are_dropped_once_the_engine_has_removed_them():
    async with Rig() as rig:
        rig.pod("a")
        rig.node("m")
        await rig.settle()
        rig.engine.restart()
        rig.gone("a")
        rig.store.remove_node("m")
        await rig.settle()
        assert rig.agrees()
        assert rig.store._tasks._uid == {}


async def test_a_rejection_in_a_call_that_fails_is_sent_again():
    async with Rig() as rig:
        rig.store.pod_queue._call_later = lambda seconds, call: rig.timers.append(call)
        apply = rig.engine.apply

        async def fails(update):
            if update.rejections:
                rig.engine.apply = apply
                raise EngineError("Apply", "DEADLINE_EXCEEDED", "slow")
            return await apply(update)

        rig.engine.apply = fails
        rig.kube.put("a", gates=True)
        rig.store.observe_pod(pod("a"))
        await rig.settle()
        assert rig.state("a") == "assumed"
        for fire in rig.timers:
            fire()
        await rig.settle()
        assert rig.state("a") == "waiting"


async def test_a_round_requested_by_the_engine_runs_without_a_change():
    async with Rig() as rig:
        rounds = rig.engine.round

        async def answer_soon(request):
            reply = await rounds(request)
            reply.wake_us = request.now_us
            return reply

        rig.engine.round = answer_soon
        rig.changed.set()
        async with asyncio.timeout(5):
            while rig.engine.calls["round"] < 4:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


async def test_a_bind_that_fails_after_a_resync_frees_the_node():
    async with Rig(cpu="1") as rig:
        await rig.bind_in_flight("a", cpu="1")
        rig.engine.restart()
        rig.changed.set()
        await rig.settle()
        assert rig.state("a") == "bound"  # as good as done
        rig.kube.put("a", gates=True)
        await rig.answered()
        rig.kube.put("a")
        rig.now_us += 10_000_000
        rig.changed.set()
        await rig.settle()
        assert rig.bound == ["a"]
        assert rig.agrees()


@pytest.mark.parametrize("method", ["apply", "round", "resync"])
@pytest.mark.parametrize("lost", [False, True], ids=["refused", "answer lost"])
async def test_a_call_that_fails_is_repeated(method, lost):
    rig = Rig(cpu="100", pods="100")
    errors = [unavailable(), EngineError(method, "DEADLINE_EXCEEDED", "slow"), EngineError(method, "UNKNOWN", "oops")]
    (rig.engine.lose if lost else rig.engine.fail)[method] = errors
    rig.store.pod_queue._call_later = lambda seconds, call: rig.timers.append(call)
    async with rig:
        for number in range(4):
            rig.pod(f"p{number}")
        for _ in range(6):
            await rig.settle()
            timers, rig.timers[:] = list(rig.timers), []
            for fire in timers:
                fire()
        await rig.settle()
        assert sorted(rig.bound) == ["p0", "p1", "p2", "p3"]
        assert len(rig.kube.asked) == 4
        assert rig.agrees()


async def test_a_service_that_was_only_unreachable_is_not_resynchronised():
    async with Rig() as rig:
        rig.engine.fail["apply"] = [unavailable()]
        rig.store.pod_queue._call_later = lambda seconds, call: call()
        rig.pod("a")
        await rig.settle()
        assert rig.bound == ["a"]
        assert (rig.engine.calls["resync"], rig.engine.calls["hello"]) == (1, 2)
        rig.engine.restart()
        rig.engine.fail["apply"] = [unavailable()]
        rig.pod("b")
        await rig.settle()
        assert rig.bound == ["a", "b"]
        assert rig.engine.calls["resync"] == 2


async def test_an_interrupted_resync_is_repeated_even_if_the_service_does_not_report_it():
    async with Rig(cpu="100", pods="100") as rig:
        rig.pod("a")
        await rig.settle()
        resync = rig.engine.resync

        async def breaks(updates):
            async for _ in updates:
                pass
            rig.engine.resync = resync
            raise unavailable()

        rig.engine.resync = breaks
        rig.session.stale(rig.session.epoch)
        rig.pod("b")  # sent in the stream that broke
        await rig.settle()
        assert rig.bound == ["a", "b"]
        assert rig.agrees()


async def test_an_object_that_makes_calls_fail_is_isolated():
    async with Rig(cpu="100", pods="100") as rig:
        apply = rig.engine.apply

        async def chokes(update):
            if "default/p7" in update.tasks.name:
                raise EngineError("Apply", "UNKNOWN", "exception calling application")
            return await apply(update)

        rig.engine.apply = chokes
        rig.store.pod_queue._call_later = lambda seconds, call: rig.timers.append(call)
        for number in range(20):
            rig.pod(f"p{number}")
        for _ in range(30):
            await rig.settle()
            timers, rig.timers[:] = list(rig.timers), []
            for fire in timers:
                fire()
        assert sorted(rig.bound) == sorted(f"p{number}" for number in range(20) if number != 7)


async def test_descriptions_without_pods_are_pruned_and_sent_again(monkeypatch):
    monkeypatch.setattr("poseidon_py.state.store._DESCRIPTIONS", 10)
    async with Rig(cpu="100", pods="100") as rig:
        for number in range(40):
            annotations = {DATA_ANNOTATION: f"{number + 1}Ki@n"}
            rig.pod(f"p{number}", cpu=f"{number + 1}m", labels={"job": str(number)}, annotations=annotations)
            await rig.settle()
            rig.gone(f"p{number}")
            await rig.settle()
        for vocabulary in (rig.store.classes, rig.store.profiles, rig.store.inputs):
            assert len(vocabulary) <= 20
        for sent in (rig.session.classes, rig.session.profiles, rig.session.inputs):
            assert 1 <= len(sent) <= 20
        rig.pod("again", cpu="1m")
        await rig.settle()
        assert rig.bound[-1] == "again"


async def test_a_round_whose_reply_was_lost_is_carried_out_once():
    async with Rig() as rig:
        rig.engine.lose["round"] = [EngineError("Round", "DEADLINE_EXCEEDED", "slow")]
        rig.pod("a")
        await rig.settle()
        assert rig.kube.asked == ["a"]
        assert rig.engine.rounds == 1


async def test_classes_that_the_service_has_lost_are_sent_again():
    async with Rig(cpu="100", pods="100") as rig:
        rig.pod("a")
        await rig.settle()
        rig.engine.forget_classes = set(rig.engine.classes)
        rig.pod("b")
        await rig.settle()
        assert rig.bound == ["a", "b"]
        assert rig.agrees()


async def test_a_rejected_placement_waits_and_is_placed_again():
    async with Rig() as rig:
        rig.kube.put("a", gates=True)
        rig.store.observe_pod(pod("a"))
        await rig.settle()
        assert rig.state("a") == "waiting"
        assert rig.task("a")["not_before"] > rig.now_us
        rig.kube.put("a")
        rig.now_us += 5_000_000
        rig.changed.set()
        await rig.settle()
        assert rig.bound == ["a"]


# -- anything, in any order -----------------------------------------------------------------------------------------

STEP = st.one_of(
    st.tuples(
        st.sampled_from(["pod", "bound elsewhere", "gone", "deleting", "recreate", "gated"]), st.sampled_from("abcdef")
    ),
    st.tuples(
        st.sampled_from(["restart", "fail apply", "fail round", "lose apply", "lose round", "settle"]), st.just("")
    ),
    st.tuples(st.sampled_from(["node", "no node", "new node", "bind fails", "bind lost"]), st.sampled_from("nm")),
)


@pytest.mark.slow
@given(st.lists(STEP, max_size=25))
@examples(60)
def test_after_any_faults_the_engine_has_the_true_state_and_no_pod_is_bound_twice(steps):
    from poseidon_py.kube.client import BusyError, LostAnswerError

    async def run():
        rig = Rig(nodes=("n",), cpu="100", pods="100")
        rig.store.pod_queue._call_later = rig.store.node_queue._call_later = lambda seconds, call: rig.timers.append(
            call
        )
        uids = dict.fromkeys("abcdef", 0)
        async with rig:
            for what, name in steps:
                uid = f"uid-{name}-{uids.get(name)}"
                there = rig.kube.pods.get(f"default/{name}", {})
                if what in ("pod", "gated") and not there:
                    rig.pod(name, uid=uid, gates=what == "gated")
                elif what == "bound elsewhere" and there and not there.get("node"):
                    rig.pod(name, uid=uid, node="m")
                elif what == "deleting" and there:
                    rig.pod(name, uid=uid, node=there.get("node", ""), deleting=True)
                elif what in ("gone", "recreate") and there:
                    rig.gone(name, uid)
                    uids[name] += 1
                    if what == "recreate":
                        rig.pod(name, uid=f"uid-{name}-{uids[name]}")
                elif what == "restart":
                    rig.engine.restart()
                elif what.startswith(("fail", "lose")):
                    kind, method = what.split()
                    getattr(rig.engine, kind).setdefault(method, []).append(EngineError(method, "UNKNOWN", "x"))
                elif what == "node":
                    rig.node(name, cpu="100", pods="100")
                elif what == "no node":
                    rig.store.remove_node(name)
                elif what == "new node":
                    rig.store.observe_node(node(name, uid=f"new-{len(rig.kube.asked)}", cpu="100", pods="100"))
                elif what == "bind fails":
                    rig.kube.faults.append(BusyError(429, "", ""))
                elif what == "bind lost":
                    rig.kube.faults.append(("lost", LostAnswerError("reset")))
                elif what == "settle":
                    await rig.settle()
            rig.node("n", cpu="100", pods="100")
            for _ in range(8):
                await rig.settle()
                rig.now_us += 100_000_000
                rig.changed.set()
                timers, rig.timers[:] = list(rig.timers), []
                for fire in timers:
                    fire()
            await rig.settle()
            assert rig.agrees()
            bound = [uid for uid, _ in rig.kube.binds]
            assert len(bound) == len(set(bound))
            # none is lost: all that may be placed are, because they fit
            assert not [known.full_name for known in rig.store.pods.values() if known.schedulable]

    asyncio.run(run())
