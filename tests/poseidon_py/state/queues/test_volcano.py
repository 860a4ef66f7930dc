"""Volcano's queues as a tree, and the queues of pods."""

import pytest

from poseidon_py.describe.queues.model import EVERY_NODE, Queue, Quota, ReclaimRules, Sharing, Stop, Victims, id_of
from tests.poseidon_py.state.queues.rig import Rig

ANNOTATION = "scheduling.volcano.sh/queue-name"
GROUP = "scheduling.k8s.io/group-name"


@pytest.fixture
def rig():
    return Rig("volcano")


def queue(rig, name, annotations=None, status=None, **spec):
    rig.put("VolcanoQueue", name, spec, annotations=annotations or {}, status=status or {})


def test_amounts_become_quotas(rig):
    queue(rig, "root")
    queue(
        rig,
        "team",
        weight=5,
        deserved={"cpu": "4", "memory": "1Gi"},
        guarantee={"resource": {"cpu": "1", "nvidia.com/gpu": 2}},
        capability={"cpu": "8", "pods": 10},
        reclaimable=False,
        priority=3,
        dequeueStrategy="fifo",
    )
    assert rig.tree()["volcano/team"] == Queue(
        "volcano/team",
        "team",
        "volcano/root",
        (
            Quota(EVERY_NODE, "cpu", 4000, lending_limit=3000, limit=8000),  # a guarantee of 1000 is not lent
            Quota(EVERY_NODE, "memory", 2**30),
            Quota(EVERY_NODE, "nvidia.com/gpu", 2, lending_limit=0),
            Quota(EVERY_NODE, "pods", limit=10),
        ),
        weight=5.0,
        priority=3,
        within=Victims.LOWER_PRIORITY,
        reclaim=Victims.ANY,
        strict_fifo=True,
        reclaimable=False,
    )
    assert (rig.queues.tree.rules.sharing, rig.problems()) == (Sharing.PROPORTIONAL, {})


@pytest.mark.parametrize("parent", [{}, {"parent": "root"}], ids=["", "named"])
def test_without_the_queue_root_all_are_at_the_top(rig, parent):
    """Volcano's scheduler creates `root` where it is missing (cache.go, newDefaultAndRootQueue)."""
    queue(rig, "a", **parent)
    queue(rig, "b", parent="a")
    assert {key: each.parent for key, each in rig.tree().items()} == {"volcano/a": "", "volcano/b": "volcano/a"}
    assert rig.problems() == {}
    queue(rig, "root", **parent)
    assert {key: each.parent for key, each in rig.tree().items()} == {
        "volcano/a": "volcano/root",
        "volcano/b": "volcano/a",
        "volcano/root": "",
    }
    assert rig.problems() == {}


def test_a_closed_queue_takes_no_pods_nor_do_those_below_it(rig):
    queue(rig, "a", status={"state": "Closed"})
    queue(rig, "b", parent="a")
    queue(rig, "c", status={"state": "Open"})
    stops = {each.name: each.stop for each in rig.tree().values()}
    assert stops == {"a": Stop.HOLD, "b": Stop.HOLD, "c": Stop.NONE}


def hierarchy(path, weights):
    return {"volcano.sh/hierarchy": path, "volcano.sh/hierarchy-weights": weights}


def test_annotations_make_a_hierarchy(rig):
    queue(rig, "sci", hierarchy("root/sci", "100/50"))
    queue(rig, "dev", hierarchy("root/eng/dev", "root/50/60"))
    queue(rig, "prod", hierarchy("root/eng/prod", "100/50/40"))
    found = {key: (each.parent, each.weight) for key, each in rig.tree().items()}
    assert found == {
        "volcano-path/root": ("", 1.0),
        "volcano-path/root/eng": ("volcano-path/root", 50.0),
        "volcano/sci": ("volcano-path/root", 50.0),
        "volcano/dev": ("volcano-path/root/eng", 60.0),
        "volcano/prod": ("volcano-path/root/eng", 40.0),
    }
    assert rig.queues.tree.rules.sharing is Sharing.HIERARCHICAL_DRF
    assert rig.queues.tree.rules.reclaim is ReclaimRules.DOMINANT_SHARE


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        pytest.param(
            {"weight": 0},
            "spec.weight: 0 is not valid and is ignored; give a whole number from 1 to 65535",
            id="weight",
        ),
        pytest.param(
            {"deserved": {"cpu": 2}, "capability": {"cpu": 1}},
            "spec.deserved.cpu: is more than the capability; raise spec.capability or lower it",
            id="deserved",
        ),
        pytest.param(
            {"extendClusters": [{"name": "other"}]},
            "spec.extendClusters[].name: has no effect: pods stay in this cluster",
            id="other clusters",
        ),
        pytest.param(
            {"annotations": hierarchy("eng/dev", "1/2")},
            "metadata.annotations[volcano.sh/hierarchy]: 'eng/dev' is not valid and is ignored; give a path like "
            "root/team/queue",
            id="path",
        ),
        pytest.param(
            {"annotations": hierarchy("root/a/q", "1/2")},
            "metadata.annotations[volcano.sh/hierarchy-weights]: has 2 weights for 3 names, so each counts as 1; give "
            "one for each",
            id="weights",
        ),
        pytest.param(
            {"annotations": hierarchy("root/q", "1/x")},
            "metadata.annotations[volcano.sh/hierarchy-weights].1: 'x' is not valid and is ignored; give a number of "
            "at least 0",
            id="weight of a path",
        ),
    ],
)
def test_an_invalid_field_is_named_and_the_others_count(rig, given, problem):
    queue(rig, "q", **{"priority": 7, **given})
    assert rig.problems() == {"q": [problem]}
    assert rig.tree()["volcano/q"].priority == 7


def test_the_queue_of_a_pod_is_that_of_its_group_and_follows_it(rig):
    queue(rig, "a")
    queue(rig, "b")
    rig.pod("p", annotations={GROUP: "g", ANNOTATION: "b"})
    assert rig.key("p") == "volcano/b"
    rig.group("g", {"minMember": 1, "queue": "a"})
    assert rig.sent("p").queue == id_of("volcano/a")
    rig.group("g", {"minMember": 1, "queue": "c"})
    assert rig.problem("p") == "queue c does not exist: create it or change spec.queue of PodGroup default/g"
    rig.group("g", {"minMember": 1})
    assert rig.key("p") == ""  # Volcano would create the queue default, without limits
    queue(rig, "default")
    assert rig.key("p") == "volcano/default"


def test_pods_without_a_group_name_a_queue_or_are_in_the_default_one(rig):
    queue(rig, "a")
    rig.pod("p", annotations={ANNOTATION: "a"})
    rig.pod("plain")
    assert (rig.key("p"), rig.key("plain")) == ("volcano/a", "")
    queue(rig, "default")
    assert rig.key("plain") == "volcano/default"


def test_the_queues_that_volcano_creates_are_no_sign_of_use():
    rig = Rig("auto")
    queue(rig, "root")
    queue(rig, "default")
    assert rig.kind == "poseidon"
    queue(rig, "team")
    assert rig.kind == "volcano"


def test_a_queue_with_a_wish_that_cannot_be_kept_is_closed_and_so_are_those_below_it(rig):
    """Volcano's plug-in nodegroup keeps pods of a queue off other nodes; without it they would run anywhere."""
    required = {"nodeGroupAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": ["g"]}}
    queue(rig, "team", affinity=required)
    queue(rig, "below", parent="team")
    queue(rig, "other")
    assert {key: each.stop for key, each in rig.tree().items()} == {
        "volcano/team": Stop.HOLD,
        "volcano/below": Stop.HOLD,
        "volcano/other": Stop.NONE,
    }
    rig.pod("a", annotations={"scheduling.volcano.sh/queue-name": "below"})
    field = "spec.affinity.nodeGroupAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    assert rig.problem("a").startswith(f"queue team is closed: {field}: node groups of queues are not read")
    queue(rig, "team")
    assert rig.problem("a") == ""
