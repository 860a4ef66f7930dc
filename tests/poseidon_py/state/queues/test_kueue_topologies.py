"""Topologies of flavors, and the levels that pods name."""

import pytest

from poseidon_py.describe.queues.model import Stop
from tests.poseidon_py.state.queues.kueue_objects import LABEL, kueue_rig, simple

REQUIRED, PREFERRED = "kueue.x-k8s.io/podset-required-topology", "kueue.x-k8s.io/podset-preferred-topology"
LEVELS = {"levels": [{"nodeLabel": "block"}, {"nodeLabel": "rack"}]}


@pytest.fixture
def rig():
    return kueue_rig()


def with_topology(rig):
    rig.put("ResourceFlavor", "on-demand", {"nodeLabels": {"tier": "on-demand"}, "topologyName": "dc"})
    simple(rig)
    rig.put("LocalQueue", "q", {"clusterQueue": "team-a"}, namespace="default")


def test_a_flavor_whose_topology_does_not_exist_closes_its_queues(rig):
    with_topology(rig)
    assert rig.tree()["clusterqueue/team-a"].stop is Stop.HOLD
    (declared,) = [each for each in rig.queues.declared() if each.key == "clusterqueue/team-a"]
    assert (declared.inactive, declared.reason) == (
        "Topology dc does not exist; create it or change spec.topologyName of ResourceFlavor on-demand",
        "TopologyNotFound",
    )
    rig.put("Topology", "dc", LEVELS)
    assert rig.tree()["clusterqueue/team-a"].stop is Stop.NONE
    rig.drop("Topology", "dc")
    assert rig.tree()["clusterqueue/team-a"].stop is Stop.HOLD


@pytest.mark.parametrize("annotation", [REQUIRED, PREFERRED])
def test_pods_name_levels_of_the_topologies_of_their_queue(rig, annotation):
    with_topology(rig)
    rig.put("Topology", "dc", LEVELS)
    rig.pod("good", labels={LABEL: "q"}, annotations={annotation: "rack"})
    rig.pod("bad", labels={LABEL: "q"}, annotations={annotation: "shelf"})
    assert rig.problem("good") == ""
    assert rig.problem("bad") == f"annotation {annotation}: shelf is no level of Topology dc; give block or rack"
    rig.put("Topology", "dc", {"levels": [{"nodeLabel": "shelf"}]})
    assert rig.problem("bad") == ""
    assert rig.problem("good").endswith("give shelf")
    rig.put("ResourceFlavor", "on-demand", {"nodeLabels": {"tier": "on-demand"}})  # no flavor has a topology
    assert rig.problem("good") == ""


def test_a_topology_without_levels_says_so(rig):
    rig.put("Topology", "dc", {"levels": [{"nodeLabel": ""}]})
    problem = "spec.levels: names no labels; give a list of nodeLabel, the widest domains first"
    assert rig.problems() == {"dc": [problem]}
