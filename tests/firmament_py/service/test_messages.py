"""Messages about tasks' demands on each other become the values that the engine works with, or are refused by name."""

from typing import Any

import pytest

from firmament_py.engine.stats import RoundStats
from firmament_py.model.constraints import PeerDemand, PeerSelector, PeerTerm, PreferenceSet, Requirement, Spread, Term
from firmament_py.service.calls.invalid_field import InvalidField
from firmament_py.service.messages import class_defined, tasks_observed
from firmament_py.service.replies import round_stats
from protos.gen import firmament_pb2, flow_pb2
from tests.builders import needs


def requirement(key: str, operator: str = "Exists", *values: str) -> firmament_pb2.NodeSelectorRequirement:
    return firmament_pb2.NodeSelectorRequirement(key=key, operator=operator, values=values)


def node_selector(*keys: str) -> firmament_pb2.NodeSelector:
    terms = [firmament_pb2.NodeSelectorTerm(matchExpressions=[requirement(key)]) for key in keys]
    return firmament_pb2.NodeSelector(nodeSelectorTerms=terms)


def peer(**selector) -> flow_pb2.PeerTerm:
    return flow_pb2.PeerTerm(selector=flow_pb2.PeerSelector(**selector), topology_key="zone")


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param({}, PeerSelector(), id="no-namespace-every-label"),
        pytest.param({"namespaces": ["a", "b"]}, PeerSelector(frozenset("ab")), id="namespaces"),
        pytest.param({"every_namespace": True}, PeerSelector(frozenset(), ()), id="every-namespace"),
        pytest.param(
            {"namespace_selector": [requirement("team")]}, PeerSelector(frozenset(), (needs("team"),)), id="some"
        ),
        pytest.param({"no_task": True, "labels": [requirement("x")]}, PeerSelector(labels=None), id="no-task"),
        pytest.param(
            {"labels": [requirement("app", "In", "a", "b")]},
            PeerSelector(labels=(needs("app", "In", "a", "b"),)),
            id="labels",
        ),
    ],
)
def test_selectors_of_tasks(message, expected):
    cls = class_defined(flow_pb2.TaskClass(id=1, affinity=[peer(**message)], anti_affinity=[peer(**message)]))
    assert cls.peers == PeerDemand((PeerTerm(expected, "zone"),), (PeerTerm(expected, "zone"),))


def test_spreads_are_constraints_or_preferences():
    hard = flow_pb2.Spread(topology_key="zone", max_skew=2)
    soft = flow_pb2.Spread(
        topology_key="host", max_skew=1, min_domains=3, ignore_affinity=True, honor_taints=True, preferred=True
    )
    cls = class_defined(flow_pb2.TaskClass(id=1, spread=[hard, soft]))
    assert cls.peers.spread == (Spread(PeerSelector(), "zone", 2, 1, True, False),)
    assert cls.preferences.spread == (Spread(PeerSelector(), "host", 1, 3, False, True),)


def test_preferences_and_tokens():
    preferred = firmament_pb2.PreferredSchedulingTerm(
        weight=7, preference=firmament_pb2.NodeSelectorTerm(matchExpressions=[requirement("disk")])
    )
    peers = [flow_pb2.PreferredPeer(term=peer(), weight=weight) for weight in (5, 0, -5)]
    cls = class_defined(
        flow_pb2.TaskClass(
            id=1, preferred_nodes=[preferred], preferred_peers=peers, images=["i"], avoided_as="rs", tokens=["t"]
        )
    )
    term = PeerTerm(PeerSelector(), "zone")
    nodes = ((7, Term((Requirement("disk", needs("disk").operator),))),)
    assert cls.preferences == PreferenceSet(nodes, ((5, term), (-5, term)), (), ("i",), "rs")
    assert cls.tokens == ("t",)


def test_groups_of_node_affinity():
    message = flow_pb2.TaskClass(
        id=1,
        node_affinity=node_selector("a", "b"),
        further_affinity=[node_selector("c"), node_selector()],
        further_names=["", "volume"],
    )
    demand = class_defined(message).demand
    one, two, three = (Term((needs(key),)) for key in "abc")
    assert demand.affinity == ((one, two), (three,))
    assert demand.further == (("volume", ()),), "no term can match"


@pytest.mark.parametrize(
    ("message", "field"),
    [
        pytest.param({"affinity": [flow_pb2.PeerTerm()]}, "topology_key", id="affinity-without-key"),
        pytest.param({"spread": [flow_pb2.Spread(max_skew=1)]}, "spread.topology_key", id="spread-without-key"),
        pytest.param({"affinity": [peer(labels=[requirement("x", "Near")])]}, "operator of 'x'", id="operator"),
        pytest.param(
            {"further_affinity": [node_selector("a")], "further_names": ["x", "y"]}, "further_names", id="names"
        ),
    ],
)
def test_invalid_fields_are_named(message, field):
    with pytest.raises(InvalidField) as caught:
        class_defined(flow_pb2.TaskClass(id=1, **message))
    assert caught.value.field == field


def tasks(**columns) -> flow_pb2.Tasks:
    return flow_pb2.Tasks(
        uid=[1, 2], class_id=[1, 1], job_id=[0, 0], created_us=[0, 0], node=[0, 0], name="ab", **columns
    )


def test_optional_columns_are_complete_or_empty():
    event = tasks_observed(tasks())
    assert (event.label_set_id, event.leaving) == (None, None)
    event = tasks_observed(tasks(profile_id=[3, 0], leaving=[True, False]))
    assert event.label_set_id is not None
    assert event.leaving is not None
    assert (event.label_set_id.tolist(), event.leaving.tolist()) == ([3, 0], [True, False])
    for column in ({"profile_id": [1]}, {"leaving": [True]}):
        with pytest.raises(InvalidField, match="columns must be equally long"):
            tasks_observed(tasks(**column))


def test_expected_duration():
    assert class_defined(flow_pb2.TaskClass(id=1, expected_seconds=90)).expected_us == 90_000_000
    assert class_defined(flow_pb2.TaskClass(id=1)).expected_us == 0


def test_every_statistic_of_a_round_has_a_field():
    figures: dict[str, Any] = {name: number for number, name in enumerate(RoundStats.__dataclass_fields__, 1)}
    figures |= {"policy": "trivial", "fallback": "why", "stage_seconds": {"solve": 2.0}, "unsolved": {"infeasible": 3}}
    figures |= {"placed_by": {"flow": 4}}
    message = round_stats(RoundStats(**figures))
    assert {field.name for field in message.DESCRIPTOR.fields} == set(figures)
    assert {name: getattr(message, name) for name in figures} == figures
