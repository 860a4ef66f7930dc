"""Levels of a Topology above the one that pods prefer or require: what gangs are told of them."""

import pytest

from tests.poseidon_py.state.queues.rig import Rig

LABEL = "kueue.x-k8s.io/queue-name"
REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
TWO = {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]}


@pytest.fixture
def rig():
    return Rig("kueue")


def in_flavors(rig, **topologies):
    """LocalQueue q of a ClusterQueue with a flavor for each of these names of Topologies."""
    for name, topology in topologies.items():
        rig.put("ResourceFlavor", name, {"nodeLabels": {"kind": name}, "topologyName": topology})
    flavors = [{"name": name, "resources": [{"name": "cpu", "nominalQuota": 9}]} for name in topologies]
    groups = [{"coveredResources": ["cpu"], "flavors": flavors}]
    rig.put("ClusterQueue", "team-a", {"namespaceSelector": {}, "resourceGroups": groups})
    rig.put("LocalQueue", "q", {"clusterQueue": "team-a"}, namespace="default")


GROUP = {"kueue.x-k8s.io/pod-group-name": "g"}


def in_group(rig, name, level, annotation=PREFERRED, queue="q"):
    annotations = {annotation: level, "kueue.x-k8s.io/pod-group-total-count": "2"}
    rig.pod(name, labels={LABEL: queue, **GROUP}, annotations=annotations)


def levels_of(rig, name):
    """The labels of the topology of a pod's gang, the narrowest first, and whether it is required."""
    message = rig.store.gangs.message(rig.known(name).gang.id)
    return (*message.narrower_keys, message.topology_key), message.topology_required


FOUR = {"levels": [{"nodeLabel": name} for name in ("dc", "block", "rack", "host")]}


@pytest.mark.parametrize(
    ("annotation", "level", "expected"),
    [
        pytest.param(PREFERRED, "host", ("host", "rack", "block", "dc"), id="the-narrowest"),
        pytest.param(PREFERRED, "block", ("block", "dc"), id="an-inner-one"),
        pytest.param(PREFERRED, "dc", ("dc",), id="the-widest"),
        pytest.param(REQUIRED, "rack", ("rack",), id="required"),
    ],
)
def test_a_preferred_level_is_followed_by_those_above_it(rig, annotation, level, expected):
    in_flavors(rig, fast="dc")
    rig.put("Topology", "dc", FOUR)
    in_group(rig, "p", level, annotation)
    assert levels_of(rig, "p") == (expected, annotation == REQUIRED)


@pytest.mark.parametrize(
    ("annotation", "level", "outer"),
    [(REQUIRED, "rack", ["block", "dc"]), (REQUIRED, "dc", []), (PREFERRED, "rack", [])],
)
def test_a_domain_of_a_required_level_is_within_one_of_each_level_above_it(rig, annotation, level, outer):
    in_flavors(rig, fast="dc")
    in_group(rig, "p", level, annotation)
    assert outer_keys(rig) == []
    rig.put("Topology", "dc", FOUR)
    assert outer_keys(rig) == outer
    in_flavors(rig, fast="dc", slow="other")
    rig.put("Topology", "other", {"levels": [{"nodeLabel": name} for name in ("zone", "block", "rack")]})
    assert outer_keys(rig) == [key for key in outer if key == "block"]


def outer_keys(rig):
    return list(rig.store.gangs.message(rig.known("p").gang.id).outer_keys)


def test_levels_follow_the_topology(rig):
    in_flavors(rig, fast="dc")
    in_group(rig, "p", "rack")
    in_group(rig, "q", "rack")
    assert levels_of(rig, "p") == (("rack",), False)
    rig.put("Topology", "dc", TWO)
    assert levels_of(rig, "p") == (("rack", "block"), False)
    rig.put("Topology", "dc", FOUR)
    assert levels_of(rig, "q") == (("rack", "block", "dc"), False)
    rig.put("ResourceFlavor", "fast", {"nodeLabels": {"kind": "fast"}})
    assert levels_of(rig, "p") == (("rack",), False)


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (("zone", "block", "rack"), ("rack", "block")),
        (("dc", "rack"), ("rack", "dc")),
        (("rack",), ("rack",)),
        (("zone", "shelf"), ("rack", "block", "dc")),
    ],
)
def test_of_several_topologies_the_levels_count_that_all_have_above(rig, other, expected):
    in_flavors(rig, fast="dc", slow="other")
    rig.put("Topology", "dc", FOUR)
    rig.put("Topology", "other", {"levels": [{"nodeLabel": name} for name in other]})
    in_group(rig, "p", "rack")
    assert levels_of(rig, "p") == (expected, False)


def test_members_in_queues_of_different_topologies_have_their_own_level_alone(rig):
    in_flavors(rig, fast="dc")
    rig.put("Topology", "dc", TWO)
    in_group(rig, "p", "rack")
    in_group(rig, "q", "rack", queue="elsewhere")
    assert levels_of(rig, "p") == (("rack",), False)
    rig.put("LocalQueue", "elsewhere", {"clusterQueue": "team-a"}, namespace="default")
    assert levels_of(rig, "p") == (("rack", "block"), False)


def test_a_topology_has_sixteen_levels_at_most(rig):
    rig.put("Topology", "dc", {"levels": [{"nodeLabel": f"l{at}"} for at in range(17)]})
    assert rig.problems() == {"dc": ["spec.levels: has 17 labels; only the first 16 count"]}
