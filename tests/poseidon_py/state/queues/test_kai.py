"""KAI's queues as a tree, and the queues of pods."""

import json
import math

import msgspec
import pytest

from poseidon_py.describe.queues.messages import queue_message
from poseidon_py.describe.queues.model import EVERY_NODE, UNBOUNDED, Queue, Quota, Sharing, Victims, id_of
from poseidon_py.state.gangs.by_pod_group import KAI as GROUPS
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
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


def test_minimum_runtimes_are_those_of_the_closest_queue_that_has_them_else_of_the_shard(rig):
    def found():
        tree = rig.tree().values()
        return {each.name: (each.preempt_min_runtime_seconds, each.reclaim_min_runtime_seconds) for each in tree}

    queue(rig, "org", resources=free(), preemptMinRuntime="5m")
    queue(rig, "a", resources=free(), parentQueue="org", preemptMinRuntime="0s", reclaimMinRuntime="1m")
    queue(rig, "b", resources=free(), parentQueue="org")
    queue(rig, "own-parent", resources=free(), parentQueue="own-parent")
    assert found() | {"own-parent": None} == {"org": (300, 0), "a": (0, 60), "b": (300, 0), "own-parent": None}
    rig.put("SchedulingShard", "default", {"minRuntime": {"preemptMinRuntime": "10m", "reclaimMinRuntime": "20m"}})
    assert found() | {"own-parent": None} == {"org": (300, 1200), "a": (0, 60), "b": (300, 1200), "own-parent": None}


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


# -- pools of nodes -----------------------------------------------------------------------------------------------

POOL = "kai.scheduler/node-pool"


def pooled(rig, name, pool=""):
    rig.put("KaiQueue", name, {"resources": free()}, labels={POOL: pool} if pool else {})


def group(rig, name, pool):
    body = {
        "metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}", "labels": {POOL: pool}},
        "spec": {},
    }
    entry = owner_or_group_of(GROUPS, msgspec.json.decode(json.dumps(body), type=Item))
    rig.objects.put(GROUPS, entry)
    rig.store.gangs.changed(GROUPS, entry)
    rig.queues.object_changed(GROUPS, entry)
    rig.work()


def pools(rig, name):
    """The nodes to which a pod is confined by their label: the values, or the operator without values."""
    found = rig.store.classes.get(rig.known(name).described.class_id)
    needed = [
        each
        for selector, reason in zip(found.further_affinity, found.further_names, strict=True)
        for each in selector.nodeSelectorTerms[0].matchExpressions
        if reason == "node pool"
    ]
    assert {each.key for each in needed} <= {POOL}
    return sorted({value for each in needed for value in list(each.values) or [each.operator]})


def test_a_pod_goes_to_nodes_of_the_pool_that_it_names_without_queues():
    rig = Rig("off")
    rig.pod("a", labels={POOL: "x"})
    rig.pod("b")
    assert (pools(rig, "a"), pools(rig, "b")) == (["x"], [])


def test_an_empty_pool_is_named_with_the_remedy():
    rig = Rig("off")
    rig.pod("a", labels={POOL: ""})
    assert rig.known("a").described.problem == (
        f"metadata.labels[{POOL}]: is empty; name a pool of nodes, or remove the label"
    )


def test_a_pod_goes_to_nodes_of_the_pool_of_its_pod_group_without_queues():
    rig = Rig("off")
    group(rig, "g", "x")
    rig.pod("a", annotations={"pod-group-name": "g"})
    rig.pod("b", annotations={"pod-group-name": "g"}, labels={POOL: "y"})
    assert (pools(rig, "a"), pools(rig, "b")) == (["x"], ["x", "y"])  # no node is in both
    group(rig, "g", "z")
    assert pools(rig, "a") == ["z"]
    rig.pod("a")
    assert pools(rig, "a") == []  # it has left the group


def test_pods_without_a_pool_go_to_nodes_without_one_while_queues_are_in_force(rig):
    pooled(rig, "q")
    rig.pod("a", labels={LABEL: "q"})
    rig.pod("b")
    assert (pools(rig, "a"), pools(rig, "b")) == (["DoesNotExist"], [])
    assert rig.problem("a") == ""


def test_a_queue_takes_pods_of_its_pool_only(rig):
    pooled(rig, "q", "x")
    rig.pod("a", labels={LABEL: "q", POOL: "x"})
    rig.pod("b", labels={LABEL: "q", POOL: "y"})
    rig.pod("c", labels={LABEL: "q"})
    same = f"give both the same label {POOL}, or name another queue"
    assert rig.problem("a") == ""
    assert rig.problem("b") == f"queue q belongs to node pool x, and the pod to node pool y: {same}"
    assert rig.problem("c") == f"queue q belongs to node pool x, and the pod to no node pool: {same}"
    assert pools(rig, "a") == ["x"]
    pooled(rig, "q", "y")
    assert rig.problem("a") == f"queue q belongs to node pool y, and the pod to node pool x: {same}"
    assert rig.problem("b") == ""


def test_the_pool_of_an_owner_counts_while_queues_are_in_force(rig):
    pooled(rig, "q", "x")
    rig.job("j", {LABEL: "q", POOL: "x"})
    rig.pod("a", owner="uid-j")
    assert (rig.key("a"), rig.problem("a"), pools(rig, "a")) == ("kai/q", "", ["x"])


def test_the_pool_of_a_pod_group_is_that_of_its_pods(rig):
    pooled(rig, "q", "x")
    group(rig, "g", "x")
    rig.pod("a", annotations={"pod-group-name": "g"}, labels={LABEL: "q"})
    assert (rig.problem("a"), pools(rig, "a")) == ("", ["x"])
