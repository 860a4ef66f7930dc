"""What pods are spread from by default: the selectors of Services and controllers, merged as kube-scheduler does."""

import json

import pytest

from poseidon_py.describe.pod_affinity import default_selector
from poseidon_py.describe.task_classes import Classes, Extras
from protos.gen import flow_pb2
from tests.poseidon_py.builders import pod

A, B = {"app": "a"}, {"tier": "b"}
IN_A, IN_B = ("app", "In", ["a"]), ("tier", "In", ["b"])
RC, RS, STS = "ReplicationController", "ReplicaSet", "StatefulSet"


def merged(services, kind="", selector=None):
    """The requirements of the merged selector; None: there is none."""
    of_controller = b"" if selector is None else json.dumps(selector).encode()
    encoded = default_selector("ns", services, kind, of_controller)
    if not encoded:
        return None
    message = flow_pb2.PeerSelector.FromString(encoded)
    assert (list(message.namespaces), message.every_namespace, message.no_task) == (["ns"], False, False)
    return sorted((each.key, each.operator, list(each.values)) for each in message.labels)


def labels(**selector):
    return {"matchLabels": selector}


@pytest.mark.parametrize(
    ("services", "kind", "selector", "expected"),
    [
        pytest.param([], "", None, None, id="nothing"),
        pytest.param([A], "", None, [IN_A], id="one service"),
        pytest.param([A, {**A, **B}], "", None, [IN_A, IN_B], id="two services"),
        pytest.param([], RC, A, [IN_A], id="replication controller"),
        pytest.param([A], RC, B, [IN_A, IN_B], id="service and replication controller"),
        pytest.param([A], RC, {"app": "c"}, [("app", "In", ["c"])], id="a replication controller overrides services"),
        pytest.param([], RC, {}, None, id="an empty selector of a replication controller"),
        pytest.param([], RS, labels(app="a"), [IN_A], id="replica set"),
        pytest.param([A], RS, labels(app="a"), [IN_A], id="repetition"),
        pytest.param([A], RS, labels(app="c"), [IN_A, ("app", "In", ["c"])], id="a replica set adds to services"),
        pytest.param([B], STS, labels(app="a"), [IN_A, IN_B], id="service and stateful set"),
        pytest.param(
            [A],
            STS,
            {"matchExpressions": [{"key": "x", "operator": "NotIn", "values": ["1", "2"]}]},
            [IN_A, ("x", "NotIn", ["1", "2"])],
            id="expressions",
        ),
        pytest.param([], STS, {}, None, id="an empty selector of a stateful set"),
        pytest.param([A], RS, {"matchExpressions": [{"key": "x", "operator": "Near"}]}, [IN_A], id="invalid"),
        pytest.param([A], RC, {"app": 7}, [IN_A], id="malformed"),
        pytest.param([{f"k{at}": "" for at in range(65)}], "", None, None, id="too many requirements"),
    ],
)
def test_the_selector_is_merged_from_services_and_controller(services, kind, selector, expected):
    assert merged(services, kind, selector) == expected


def test_equal_selectors_are_encoded_alike():
    assert default_selector("ns", [A, B]) == default_selector("ns", [{**B, **A}])
    assert default_selector("ns", [A], RS, json.dumps(labels(tier="b")).encode()) == default_selector("ns", [B, A])


def spread_of(spec=None):
    classes = Classes()
    template = classes.of(pod(spec=spec))
    selector = default_selector("default", [A])
    found = classes.get(classes.extended(template, Extras(spread_from=selector)))
    assert found is not None
    assert classes.spread(template, selector) == found.id
    return template, found


def test_a_class_gets_two_preferred_constraints():
    template, found = spread_of()
    assert found.id != template
    assert [(each.topology_key, each.max_skew, each.preferred) for each in found.spread] == [
        ("kubernetes.io/hostname", 3, True),
        ("topology.kubernetes.io/zone", 5, True),
    ]
    selectors = [each.selector.SerializeToString(deterministic=True) for each in found.spread]
    assert selectors == 2 * [default_selector("default", [A])]


@pytest.mark.parametrize("when", ["ScheduleAnyway", "DoNotSchedule"])
def test_a_class_with_constraints_of_its_own_gets_none(when):
    own = {"maxSkew": 1, "topologyKey": "rack", "whenUnsatisfiable": when}
    template, found = spread_of({"topologySpreadConstraints": [own]})
    assert (found.id, len(found.spread)) == (template, 1)
