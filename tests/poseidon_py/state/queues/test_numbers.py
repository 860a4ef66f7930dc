"""Whatever number a queue states, the tree can be sent, other queues go on, and pods in no queue are scheduled."""

import pytest
import yaml

from firmament_py.model.events import QueuesObserved
from firmament_py.service.queue_messages import queue_tree
from poseidon_py.describe.queues.model import Stop, id_of
from tests.builders import make_class, make_cluster, make_node, make_tasks
from tests.poseidon_py.state.queues.kueue_objects import cluster_queue, flavor, group
from tests.poseidon_py.state.queues.rig import Rig

NUMBERS = (
    *(2**31, -(2**31) - 1, 3_000_000_000, 2**53, 2**60, 2**63 - 1, 2**63, -(2**63) - 1, 2**64, 10**30, 10**400),
    *(0.5, -0.5, 1e300, -1e300, "9" * 30, "-1", "1e999", "-1e999", "9" * 18 + "h", "0x10", "٣", ""),
)
CPU = {"cpu": 8}


def kueue(rig, name, **fields):
    quota, spec = fields.pop("cpu", {"nominalQuota": 8}), fields
    cluster_queue(rig, name, group(flavor("f", cpu=quota), covered=["cpu"]), **spec)


def own(rig, name, **spec):
    rig.put("Queue", name, {"limit": CPU} | spec)


def kai(rig, name, cpu=None, **spec):
    share = {"quota": 8000, "limit": 8000, "overQuotaWeight": 1}
    rig.put("KaiQueue", name, {"resources": {"cpu": share | (cpu or {}), "memory": share, "gpu": share}} | spec)


def volcano(rig, name, hierarchy=None, **spec):
    keys = {"volcano.sh/hierarchy": "root/x", "volcano.sh/hierarchy-weights": f"1/{hierarchy}"} if hierarchy else {}
    rig.put("VolcanoQueue", name, {"capability": CPU} | spec, annotations=keys)


def elastic(rig, name, **spec):
    rig.put("ElasticQuota", name, {"min": CPU, "max": CPU} | spec, namespace=name)


def koordinator(rig, name, shared=None, **spec):
    keys = {"quota.scheduling.koordinator.sh/shared-weight": f'{{"cpu": {shared}}}'} if shared else {}
    rig.put("KoordinatorQuota", name, {"min": CPU, "max": CPU} | spec, namespace=name, annotations=keys)


def yunikorn(rig, name, **fields):
    """Adds to the file of all queues."""
    queue = {"resources": {"max": {"vcore": 8}}} | fields | {"name": name}
    rig.file = [*getattr(rig, "file", []), queue]
    rule = {"name": "tag", "value": "namespace", "create": True}
    partition = {"name": "default", "placementrules": [rule], "queues": [{"name": "root", "queues": rig.file}]}
    text = yaml.safe_dump({"partitions": [partition]})
    rig.put("ConfigMap", "yunikorn-configs", namespace="yunikorn", data={"queues.yaml": text})


def at(*path):
    """A field at a path, as the keyword of the outermost one and what it holds."""

    def value(number):
        found = number
        for name in reversed(path[1:]):
            found = {name: found}
        return {path[0]: found}

    return value


FIELDS = [
    *(
        ("kueue", kueue, path)
        for path in (
            *(("cpu", name) for name in ("nominalQuota", "borrowingLimit", "lendingLimit")),
            ("fairSharing", "weight"),
            ("preemption", "borrowWithinCohort", "maxPriorityThreshold"),
        )
    ),
    *(
        ("poseidon", own, path)
        for path in (
            *((name, "cpu") for name in ("guarantee", "limit", "lendingLimit")),
            *(("weight",), ("priority",), ("preemptionNotice",)),
            *(("reclaim", name) for name in ("minRuntime", "delay", "evictionsPerHour")),
            *(("preemption", "minRuntime"), ("preemption", "borrowWithin", "maxPriority")),
        )
    ),
    *(
        ("kai", kai, path)
        for path in (
            *(("cpu", name) for name in ("quota", "limit", "overQuotaWeight")),
            *(("resources", "memory", name) for name in ("quota", "limit", "overQuotaWeight")),
            *(("priority",), ("preemptMinRuntime",), ("reclaimMinRuntime",)),
        )
    ),
    *(
        ("volcano", volcano, path)
        for path in (
            *(("weight",), ("priority",), ("capability", "cpu"), ("deserved", "cpu")),
            *(("guarantee", "resource", "cpu"), ("hierarchy",)),
        )
    ),
    *(("elasticquota", elastic, path) for path in (("min", "cpu"), ("max", "cpu"))),
    *(("koordinator", koordinator, path) for path in (("min", "cpu"), ("max", "cpu"), ("shared",))),
    *(
        ("yunikorn", yunikorn, path)
        for path in (
            *(("resources", name, "vcore") for name in ("guaranteed", "max")),
            *(("properties", key) for key in ("priority.offset", "preemption.delay")),
            *(("childtemplate", "properties", key) for key in ("priority.offset", "preemption.delay")),
            *(("childtemplate", "resources", name, "vcore") for name in ("guaranteed", "max")),
        )
    ),
]


def scheduled(rig):
    """Of three tasks those that the engine starts: in no queue, in the queue good, and in an unknown one."""
    queues = queue_tree(type(rig.message()).FromString(rig.message().SerializeToString()))
    good = next(queue.id for queue in rig.queues.tree.queues if queue.key.endswith("good"))
    cluster = make_cluster(make_node("n", cpu=10**6, labels={"tier": "a"}), make_class(1, cpu=1), make_tasks([1], 1))
    cluster.tell(QueuesObserved(queues), make_tasks([2], 1, queue=good), make_tasks([3], 1, queue=id_of("unknown")))
    return set(cluster.round())


@pytest.mark.parametrize(
    ("kind", "put", "path"), [pytest.param(*each, id=f"{each[0]}-{'.'.join(each[2])}") for each in FIELDS]
)
def test_no_number_stops_other_queues(kind, put, path):
    rig = Rig(kind)
    if kind == "kueue":
        rig.put("ResourceFlavor", "f", {"nodeLabels": {"tier": "a"}})
    put(rig, "good")
    for index, number in enumerate(NUMBERS):
        rig.namespace(f"apart-{index}", annotations={"yunikorn.apache.org/parentqueue": f"root.bad-{index}"})
        put(rig, f"bad-{index}", **at(*path)(number))
    rig.pod("plain")
    assert len(rig.queues.tree.queues) > len(NUMBERS)
    assert scheduled(rig) == {1, 2}
    assert rig.sent("plain").queue == 0


def yunikorn_file(properties):
    rig = Rig("yunikorn")
    rig.namespace("apart", annotations={"yunikorn.apache.org/parentqueue": "root.bad"})
    text = f"""
partitions:
  - name: default
    placementrules: [{{name: tag, value: namespace, create: true}}]
    queues: [{{name: root, queues: [{{name: good}}, {{name: bad, {properties}}}]}}]
"""
    rig.put("ConfigMap", "yunikorn-configs", namespace="yunikorn", data={"queues.yaml": text})
    return rig


@pytest.mark.parametrize("offset", ["2147483648", "'-2147483649'", f"0x{'f' * 9000}"], ids=["int", "text", "hex"])
@pytest.mark.parametrize("part", ["properties: {%s}", "childtemplate: {properties: {%s}}"])
def test_an_offset_that_no_priority_can_have_closes_its_queue(part, offset):
    rig = yunikorn_file(part % f"priority.offset: {offset}")
    rig.pod("p", namespace="apart")
    rig.pod("q", labels={"yunikorn.apache.org/queue": "root.good"})
    assert {key: queue.stop for key, queue in rig.tree().items()} == {
        "yunikorn/root": Stop.NONE,
        "yunikorn/root.good": Stop.NONE,
        "yunikorn/root.bad": Stop.HOLD,
        "yunikorn/root.bad.apart": Stop.HOLD,
    }
    assert "give a number from -2147483648 to 2147483647" in rig.problem("p")
    assert rig.problem("q") == ""
    assert scheduled(rig) == {1, 2}


def test_a_queue_that_no_message_can_carry_is_closed_with_the_reason():
    """What a kind has overlooked: here the name of a resource, which holds half a surrogate pair."""
    rig = yunikorn_file(r'resources: {max: {"\ud800": 1}}, queues: [{name: below}]')
    rig.pod("p", labels={"yunikorn.apache.org/queue": "root.bad.below"})
    assert rig.tree()["yunikorn/root.bad"].stop is Stop.HOLD
    assert rig.tree()["yunikorn/root.bad.below"].stop is Stop.HOLD
    assert "queue root.bad is closed: a field is out of range" in rig.problem("p")
    assert rig.queues.broken("yunikorn/root.bad").startswith("a field is out of range")
    assert scheduled(rig) == {1, 2}
