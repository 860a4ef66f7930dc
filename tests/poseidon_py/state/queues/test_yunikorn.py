"""YuniKorn's file and annotations as a tree, and the queues of pods."""

import json

import pytest

from poseidon_py.describe.queues.model import EVERY_NODE, Queue, Quota, Sharing, Victims, id_of
from poseidon_py.util.durations import LONGEST
from tests.poseidon_py.state.queues.rig import Rig

LABEL = "yunikorn.apache.org/queue"


@pytest.fixture
def rig():
    return Rig("yunikorn")


def config(rig, text, namespace="yunikorn"):
    rig.put("ConfigMap", "yunikorn-configs", namespace=namespace, data={"queues.yaml": text})


FILE = """
partitions:
  - name: default
    placementrules:
      - {name: provided}
      - {name: tag, value: namespace, create: true}
    queues:
      - name: root
        submitacl: '*'
        childtemplate: {resources: {max: {pods: 7}}}
        queues:
          - name: Team
            parent: true
            resources: {guaranteed: {vcore: 2, memory: 4Gi}, max: {vcore: 2500m, nvidia.com/gpu: 8}}
            queues:
              - name: batch
                properties: {preemption.policy: fence, preemption.delay: 1m}
              - name: online
                properties: {preemption.policy: disabled}
"""


def test_the_file_becomes_a_tree(rig):
    config(rig, FILE)
    tree = rig.tree()
    assert tree["yunikorn/root.team"] == Queue(
        "yunikorn/root.team",
        "root.team",
        "yunikorn/root",
        (
            Quota(EVERY_NODE, "cpu", 2000, limit=2500),
            Quota(EVERY_NODE, "memory", 4 * 2**30),
            Quota(EVERY_NODE, "nvidia.com/gpu", limit=8),
        ),
        reclaim=Victims.ANY,
        preemption_delay_seconds=30.0,
    )
    batch, online = tree["yunikorn/root.team.batch"], tree["yunikorn/root.team.online"]
    assert (batch.fence, batch.preemption_delay_seconds) == (True, 60.0)
    assert (online.reclaim_min_runtime_seconds, online.preempt_min_runtime_seconds) == (LONGEST, LONGEST)
    assert rig.queues.tree.rules.sharing is Sharing.PROPORTIONAL
    assert rig.problems() == {}


def test_pods_name_a_queue_or_are_in_that_of_their_namespace(rig):
    config(rig, FILE)
    rig.namespace("default")
    rig.pod("label", labels={LABEL: "root.team.batch"})
    rig.pod("short", labels={"queue": "Team.Batch"})
    rig.pod("annotated", annotations={LABEL: "root.team.online"})
    rig.pod("plain")
    rig.pod("lost", labels={LABEL: "root.none"})
    assert {name: rig.key(name) for name in ("label", "short", "annotated", "plain", "lost")} == {
        "label": "yunikorn/root.team.batch",
        "short": "yunikorn/root.team.batch",
        "annotated": "yunikorn/root.team.online",
        "plain": "yunikorn/root.default",
        "lost": "yunikorn/root.default",  # the next rule applies
    }
    assert rig.sent("plain").queue == id_of("yunikorn/root.default")
    assert rig.tree()["yunikorn/root.default"].quotas == (Quota(EVERY_NODE, "pods", limit=7),)
    assert rig.problem("plain") == ""


def test_a_pod_may_name_the_queue_of_another_namespace_once_there_is_one(rig):
    config(rig, FILE)
    rig.namespace("default")
    rig.pod("p", labels={LABEL: "root.other"})
    assert rig.key("p") == "yunikorn/root.default"
    rig.namespace("other")
    assert rig.key("p") == "yunikorn/root.other"


def test_annotations_of_a_namespace_are_the_quota_of_its_queue(rig):
    config(rig, FILE)
    rig.pod("p", namespace="a")
    quota = {"cpu": "64", "memory": "100Gi"}
    rig.namespace(
        "a",
        annotations={
            "yunikorn.apache.org/namespace.quota": json.dumps(quota),
            "yunikorn.apache.org/namespace.guaranteed": '{"cpu": "1"}',
            "yunikorn.apache.org/namespace.max.memory": "1",
            "yunikorn.apache.org/parentqueue": "root.team",
        },
    )
    found = rig.tree()["yunikorn/root.team.a"]
    assert found.parent == "yunikorn/root.team"
    assert found.quotas == (
        Quota(EVERY_NODE, "cpu", 1000, limit=64000),
        Quota(EVERY_NODE, "pods", limit=7),
        Quota(EVERY_NODE, "memory", limit=100 * 2**30),
    )
    assert rig.sent("p").queue == id_of("yunikorn/root.team.a")
    rig.namespace("a", annotations={"yunikorn.apache.org/namespace.quota": "much"})
    assert rig.key("p") == "yunikorn/root.a"
    assert rig.problems()["yunikorn/yunikorn-configs"] == [
        "namespace a: metadata.annotations[yunikorn.apache.org/namespace.quota]: is not JSON, so the queue is closed; "
        "give a "
        'mapping like {"cpu": "64", "memory": "100Gi"}'
    ]


def test_without_rules_pods_are_in_the_queue_that_they_name(rig):
    config(rig, "partitions: [{name: default, queues: [{name: root, queues: [{name: a}]}]}]")
    rig.namespace("default")
    rig.pod("p", labels={LABEL: "a"})
    rig.pod("lost", labels={LABEL: "b"})
    rig.pod("plain")
    assert (rig.key("p"), rig.key("plain")) == ("yunikorn/root.a", "")
    assert rig.problem("lost") == f"queue root.b does not exist: create it or change label {LABEL}"
    config(rig, "partitions: [{name: default, queues: [{name: root, queues: [{name: a}, {name: default}]}]}]")
    assert rig.key("plain") == "yunikorn/root.default"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        pytest.param("", "data[queues.yaml]: is missing; give the configuration of the queues", id="empty"),
        pytest.param("a: [", "queues.yaml: is not YAML: ", id="yaml"),
        pytest.param("[]", "partitions: is missing or empty; ", id="list"),
        pytest.param(
            "partitions: [{queues: [{name: root, queues: [{resources: {}}]}]}]",
            "partitions[0].queues[0].queues[0].name: is missing, so the queue is ignored; give one",
            id="no name",
        ),
        pytest.param(
            "partitions: [{queues: [{name: root, queues: [{name: a}, {name: A}]}]}]",
            "partitions[0].queues[0].queues[1].name: root.a is there twice, and the second one is ignored; rename it",
            id="twice",
        ),
        pytest.param(
            "partitions: [{queues: [{name: root, resources: {max: {cpu: 1}}}]}]",
            "partitions[0].queues[0].resources.max.cpu: is not a resource of YuniKorn and is ignored; give vcore",
            id="cpu",
        ),
        pytest.param(
            "partitions: [{placementrules: [{name: user}], queues: [{name: root}]}]",
            "partitions[0].placementrules[0].name: rule 'user' with value '' is not supported, so no queue takes ",
            id="rule",
        ),
        pytest.param(
            "partitions: [{queues: [{name: root, maxapplications: 3}]}]",
            "partitions[0].queues[0].maxapplications: applications are not counted here, so the queue takes no pods; ",
            id="applications",
        ),
        pytest.param("partitions: [{name: a}, {name: default}]", "partitions: only default counts; ", id="partitions"),
        pytest.param(
            "partitions: [{queues: &q [{name: a, queues: *q}]}]", "are too many or nested too deeply", id="endless"
        ),
    ],
)
def test_what_is_wrong_with_the_file_is_named(rig, text, problem):
    config(rig, text)
    (found,) = rig.problems()["yunikorn/yunikorn-configs"]
    assert problem in found


@pytest.mark.parametrize(
    "partition",
    [
        "limits: [{users: [a], maxresources: {vcore: 1}}]",
        "limits: [{users: [a], maxapplications: 1}]",
        "preemption: {quotapreemptionenabled: true}",
        "placementrules: [{name: provided, filter: {users: [a]}}]",
        "placementrules: [{name: provided, filter: {type: deny}}]",
        "placementrules: [{name: fixed, value: a, parent: {name: provided, filter: {groups: [b]}}}]",
        "placementrules: [{name: user}]",
    ],
)
def test_what_cannot_be_kept_of_all_queues_closes_them(rig, partition):
    config(rig, f"partitions: [{{queues: [{{name: root, queues: [{{name: a}}]}}], {partition}}}]")
    rig.pod("p", labels={LABEL: "a"})
    assert rig.problem("p").startswith("queue root is closed: partitions[0].")


@pytest.mark.parametrize(
    "partition",
    ["limits: [{users: [a], maxapplications: 0}]", "placementrules: [{name: provided, filter: {type: allow}}]"],
)
def test_what_limits_nothing_closes_nothing(rig, partition):
    config(rig, f"partitions: [{{queues: [{{name: root, queues: [{{name: a}}]}}], {partition}}}]")
    rig.pod("p", labels={LABEL: "a"})
    assert (rig.problem("p"), rig.problems()) == ("", {})


def test_a_namespace_whose_applications_are_to_be_counted_takes_no_pods(rig):
    config(rig, FILE)
    rig.namespace("default", annotations={"yunikorn.apache.org/namespace.maxApps": "3"})
    rig.pod("p")
    assert "namespace.maxApps]: applications are not counted here" in rig.problem("p")


def test_without_preemption_no_queue_reclaims(rig):
    for enabled, victims in (("true", Victims.ANY), ("false", Victims.NEVER)):
        config(
            rig,
            FILE.replace(
                "    queues:\n      - name: root",
                f"    preemption: {{enabled: {enabled}}}\n    queues:\n      - name: root",
            ),
        )
        assert {queue.reclaim for queue in rig.tree().values()} == {victims}


def test_some_properties_and_templates_are_inherited(rig):
    """A delay and that pods are protected, unless the queue says otherwise. Queues that a rule creates have what the
    closest template says."""
    config(
        rig,
        """
partitions:
  - name: default
    placementrules: [{name: tag, value: namespace, create: true, parent: {name: fixed, value: root.top.low.deep}}]
    queues:
      - name: root
        properties: {preemption.delay: 2m, preemption.policy: disabled, priority.policy: fence, priority.offset: "9"}
        childtemplate: {properties: {preemption.delay: 3m, preemption.policy: fence, priority.offset: "4"}}
        queues:
          - {name: top, properties: {preemption.policy: fence}, queues: [{name: low, parent: true}]}
          - {name: other, queues: [{name: own, properties: {preemption.policy: default, preemption.delay: 5m}}]}
""",
    )
    rig.namespace("ns")
    assert {
        each.name: (
            each.preemption_delay_seconds,
            each.fence,
            each.reclaim_min_runtime_seconds > 0,
            each.priority_offset,
            each.priority_fence,
        )
        for each in rig.tree().values()
    } == {
        "root": (120.0, False, True, 9, True),
        "root.top": (120.0, True, False, 0, False),
        "root.top.low": (120.0, False, False, 0, False),
        "root.other": (120.0, False, True, 0, False),
        "root.other.own": (300.0, False, False, 0, False),
        "root.top.low.deep": (30.0, False, False, 0, False),
        "root.top.low.deep.ns": (180.0, True, False, 4, False),
    }


def test_of_two_files_the_first_by_namespace_counts(rig):
    config(rig, FILE, "b")
    config(rig, "partitions: [{queues: [{name: root}]}]", "a")
    assert set(rig.tree()) == {"yunikorn/root"}
    rig.drop("ConfigMap", "yunikorn-configs", namespace="a")
    assert "yunikorn/root.team" in rig.tree()


# -- priorities
# ---------------------------------------------------------------------------------------------------------

PRIORITIES = """
partitions:
  - name: default
    queues:
      - name: root
        queues:
          - name: prod
            properties: {priority.offset: "1000"}
            queues:
              - name: web
                properties: {priority.offset: "10"}
              - name: batch
                properties: {priority.policy: fence, priority.offset: "-5"}
          - name: dev
            properties: {priority.policy: fence}
            queues:
              - name: one
                properties: {priority.offset: "7"}
          - name: plain
"""


def test_queues_say_how_priorities_in_them_are_seen(rig):
    config(rig, PRIORITIES)
    found = {queue.name: (queue.priority_offset, queue.priority_fence) for queue in rig.tree().values()}
    assert found == {
        "root": (0, False),
        "root.prod": (1000, False),
        "root.prod.web": (10, False),
        "root.prod.batch": (-5, True),
        "root.dev": (0, True),
        "root.dev.one": (7, False),
        "root.plain": (0, False),
    }
    assert rig.problems() == {}


def test_pods_keep_their_own_priority(rig):
    """The flow service compares them as their queues say."""
    config(rig, PRIORITIES)
    rig.pod("p", labels={"queue": "root.prod.batch"}, spec={"priority": 3})
    assert rig.known("p").described.priority == 3
    message = rig.message()
    assert message.priority_first
    assert {(queue.priority_offset, queue.priority_fence) for queue in message.queues} >= {(-5, True), (1000, False)}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("x", "'x' is not valid, so the queue is closed; give a number from -2147483648 to 2147483647"),
        ("1.5", "1.5 counts as 1; give a whole number"),
    ],
)
def test_an_invalid_offset_is_named(rig, value, problem):
    config(rig, PRIORITIES.replace('"1000"', f'"{value}"'))
    (found,) = rig.problems()["yunikorn/yunikorn-configs"]
    assert found.endswith(f"properties.priority.offset: {problem}")
