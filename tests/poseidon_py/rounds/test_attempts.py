"""What metrics say of the attempts of pods, from the first one to the bind."""

from tests.poseidon_py.rig import Rig


def value(rig, sample, **labels):
    return rig.store.metrics.registry.get_sample_value(sample, labels)


async def test_a_pod_that_waits_and_is_bound_later_has_two_attempts():
    """The node is too small at first: one unschedulable decision, then one that binds."""
    async with Rig(cpu="1") as rig:
        rig.pod("p", cpu="2")
        await rig.settle()
        assert rig.store.pods["uid-p"].unschedulable_by
        of = {"result": "unschedulable", "profile": "poseidon"}
        assert value(rig, "scheduler_schedule_attempts_total", **of) == 1
        assert value(rig, "scheduler_scheduling_attempt_duration_seconds_count", **of) == 1
        rig.node("larger", cpu="4")
        await rig.settle()
        assert rig.bound == ["p"]
    of = {"result": "scheduled", "profile": "poseidon"}
    assert value(rig, "scheduler_schedule_attempts_total", **of) == 1
    assert value(rig, "scheduler_scheduling_attempt_duration_seconds_count", **of) == 1
    assert value(rig, "scheduler_pod_scheduling_sli_duration_seconds_count", attempts="2") == 1
    assert value(rig, "scheduler_pod_scheduling_attempts_sum") == 2


async def test_time_behind_gates_is_not_the_schedulers():
    rig = Rig()
    now = 100.0
    rig.store._monotonic = lambda: now
    rig.pod("p", gates=["a"])
    now = 160.0
    rig.pod("p")
    assert rig.store.pods["uid-p"].first_seen == 160.0
    now = 170.0
    rig.pod("p")
    assert rig.store.pods["uid-p"].first_seen == 160.0
