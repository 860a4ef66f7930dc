"""KAI's queues as a tree, and the queues of pods."""

import math

import pytest

from poseidon_py.describe.queues.messages import queue_message
from poseidon_py.describe.queues.model import EVERY_NODE, UNBOUNDED, Queue, Quota, Sharing, Victims, id_of
from tests.poseidon_py.state.queues.rig import Rig

LABEL = "kai.scheduler/queue"
FREE = {"quota": 0, "limit": -1}


@pytest.fixture
def rig():
    return Rig("kai")


def queue(rig, name, **spec):
    rig.put("KaiQueue", name, spec)


def free(**resources):
    return {"cpu": FREE, "memory": FREE, "gpu": FREE} | resources


def test_units_are_millicores_megabytes_and_devices(rig):
    queue(rig, "org", resources=free())
    queue(
        rig,
        "team",
        parentQueue="org",
        priority=200,
        resources={
            "cpu": {"quota": 1500, "overQuotaWeight": 3, "limit": -1},
            "memory": {"quota": 2.5, "overQuotaWeight": 3, "limit": 4000},
            "gpu": {"quota": -1, "overQuotaWeight": 3, "limit": 8},
        },
        preemptMinRuntime="2m",
        reclaimMinRuntime="1h",
    )
    assert rig.tree()["kai/team"] == Queue(
        "kai/team",
        "team",
        "kai/org",
        (
            Quota(EVERY_NODE, "nvidia.com/gpu", UNBOUNDED, limit=8),
            Quota(EVERY_NODE, "cpu", 1500),
            Quota(EVERY_NODE, "memory", 2_500_000, limit=4_000_000_000),
        ),
        weight=3.0,
        priority=200,
        within=Victims.LOWER_PRIORITY,
        reclaim=Victims.ANY,
        preempt_min_runtime_seconds=120.0,
        reclaim_min_runtime_seconds=3600.0,
    )
    assert rig.tree()["kai/org"].priority == 100
    assert rig.tree()["kai/org"].weight == 0.0
    assert rig.queues.tree.rules.sharing is Sharing.PROPORTIONAL
    assert rig.problems() == {}


def test_what_is_not_set_is_0_and_said(rig):
    queue(rig, "q", resources={"gpu": {"quota": 1}})
    assert [(quota.nominal, quota.limit) for quota in rig.tree()["kai/q"].quotas] == [(1, 0), (0, 0), (0, 0)]
    missing = "is missing and counts as 0, so nothing may be used; give -1 for no limit"
    assert rig.problems()["q"] == [f"spec.resources.{name}.limit: {missing}" for name in ("gpu", "cpu", "memory")]


@pytest.mark.parametrize(
    ("resources", "problem"),
    [
        pytest.param(
            {"gpu": {"quota": 1.5, "limit": -1}},
            "spec.resources.gpu.quota: 1.5 is rounded down to 1; pods request whole units",
            id="fraction",
        ),
        pytest.param(
            {"gpu": {"quota": -2, "limit": -1}},
            "spec.resources.gpu.quota: -2 is not valid, so the queue is closed; give a number of at least -1",
            id="negative",
        ),
        pytest.param(
            {"gpu": {**FREE, "overQuotaWeight": 2}, "cpu": {**FREE, "overQuotaWeight": 1}},
            "spec.resources.overQuotaWeight: differs by resource; that of gpu counts for all resources",
            id="weights",
        ),
        pytest.param(
            {"cpu": 5}, "spec.resources.cpu: 5 is not valid, so the queue is closed; give a mapping", id="no mapping"
        ),
    ],
)
def test_an_invalid_field_is_named_and_the_others_count(rig, resources, problem):
    queue(rig, "q", parentQueue="org", resources=free(**resources))
    queue(rig, "org", resources=free())
    assert problem in rig.problems()["q"]
    assert rig.tree()["kai/q"].parent == "kai/org"


def test_pods_name_their_queue_and_the_others_are_in_the_default_one(rig):
    queue(rig, "team", resources=free())
    rig.pod("p", labels={LABEL: "team"})
    rig.pod("lost", labels={LABEL: "none"})
    rig.pod("plain")
    assert rig.sent("p").queue == id_of("kai/team")
    assert rig.problem("lost") == f"queue none does not exist: create it or change label {LABEL}"
    assert rig.sent("plain").queue == 0
    queue(rig, "default-queue", resources=free())
    assert rig.sent("plain").queue == id_of("kai/default-queue")
    rig.drop("KaiQueue", "default-queue")
    rig.wait()
    assert rig.sent("plain").queue == 0


def test_the_label_of_the_job_counts(rig):
    queue(rig, "team", resources=free())
    rig.job("j", {LABEL: "team"})
    rig.pod("p", owner="uid-j")
    assert rig.sent("p").queue == id_of("kai/team")


def test_the_queues_are_left_to_their_own_scheduler_unless_they_are_named():
    for mode, kind, writes in (("auto", "poseidon", True), ("kai", "kai", False)):
        rig = Rig(mode)
        queue(rig, "team", resources=free())
        assert rig.kind == "kai"
        rig.queues.set_running("kai", "kai-scheduler-default")
        assert (rig.kind, rig.queues.kinds.writes_status) == (kind, writes)


# -- past use ----------------------------------------------------------------------------------------------------


def shard(rig, name="default", **spec):
    rig.put("SchedulingShard", name, spec)


def past_use(rig):
    return rig.queues.tree.rules.past_use


def test_the_default_shard_says_how_past_use_counts(rig):
    queue(rig, "q", resources=free())
    assert past_use(rig).half_life_seconds == 0.0
    shard(rig, "pool", partitionLabelValue="a100", usageDBConfig={"usageParams": {"halfLifePeriod": "1m"}})
    assert past_use(rig).half_life_seconds == 0.0
    shard(rig, kValue=0.5, usageDBConfig={"clientType": "prometheus", "usageParams": {"halfLifePeriod": "10m"}})
    assert past_use(rig).half_life_seconds == pytest.approx(600.0)
    assert (rig.message().half_life_seconds, rig.message().past_use_weight) == (pytest.approx(600.0), 0.5)
    assert rig.problems() == {
        "pool": ["spec: the settings of this shard have no effect on queues here; those of default count"]
    }
    shard(rig, kValue=0.5)
    assert rig.message().half_life_seconds == 0.0
    rig.drop("SchedulingShard", "default")
    assert rig.problems() == {"pool": ["spec: the settings of this shard have no effect on queues here"]}


@pytest.mark.parametrize(
    ("half_life", "window"), [("", "10h"), ("2h", "10h"), ("10h", "2h"), ("1000h", "2h"), ("1m", "100h")]
)
def test_a_window_counts_by_its_mean_age(rig, half_life, window):
    """Against a sum over the samples of a window, which are weighted by the decay."""
    queue(rig, "q", resources=free())
    given = {"windowSize": window} | ({"halfLifePeriod": half_life} if half_life else {})
    shard(rig, usageDBConfig={"usageParams": given})
    seconds = {"": math.inf, "2h": 7200.0, "10h": 36_000.0, "1000h": 3_600_000.0, "1m": 60.0}[half_life]
    step = min(seconds, 3600.0 * float(window[:-1])) / 5_000
    oldest = min(3600.0 * float(window[:-1]), 60.0 * seconds)  # what is older weighs less than 2**-60
    ages = [step * (number + 0.5) for number in range(round(oldest / step))]
    weights = [0.5 ** (age / seconds) for age in ages]
    mean = sum(age * weight for age, weight in zip(ages, weights, strict=True)) / sum(weights)
    assert past_use(rig).half_life_seconds == pytest.approx(math.log(2.0) * mean, rel=1e-4)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"windowType": "cron"}, "windowType: counts as sliding; give sliding, and halfLifePeriod"),
        ({"windowSize": "0s"}, "windowSize: counts as one week; give a longer one than 0"),
        ({"halfLifePeriod": "x"}, "halfLifePeriod: 'x' is not valid and is ignored; give a duration like 90s, 10m or "
         "1h30m"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_window_is_said_and_a_week_counts(rig, given, problem):
    queue(rig, "q", resources=free())
    shard(rig, usageDBConfig={"usageParams": given})
    assert rig.problems() == {"default": [f"spec.usageDBConfig.usageParams.{problem}"]}
    assert past_use(rig).half_life_seconds == pytest.approx(math.log(2.0) * 7 * 86_400 / 2)


def test_an_unlimited_quota_within_a_limit_is_sent_as_the_limit():
    """A limit below the internal number for "unlimited" would be reported as a mistake of the user's."""
    of = [Quota(EVERY_NODE, "cpu", UNBOUNDED, limit=0), Quota(EVERY_NODE, "gpu", UNBOUNDED)]
    message = queue_message(Queue("kai/a", "a", quotas=tuple(of)))
    assert [each.nominal for each in message.quotas] == [0, UNBOUNDED]
