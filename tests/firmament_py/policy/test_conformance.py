"""The conformance suite: a policy that breaks a rule is reported for that rule and no other."""

from dataclasses import fields

import numpy as np
import pytest

from firmament_py.policy import AnywherePolicy, View
from firmament_py.policy.conformance import RULES, WAIVABLE, Finding, check, measure, report, waived
from firmament_py.policy.sample_views import PER_NODE, arrays, views
from tests.firmament_py.policy.broken_policies import (
    BROKEN,
    Alphabetical,
    Asked,
    AskedForData,
    Moving,
    MovingInOtherWords,
    Negative,
)


def test_a_valid_policy_has_no_findings():
    assert check(AnywherePolicy()) == []


@pytest.mark.slow
@pytest.mark.parametrize("policy", [Moving(), MovingInOtherWords()], ids=["as-told", "in-other-words"])
def test_a_valid_policy_with_data_costs_has_no_findings(policy):
    assert check(policy) == []


class ByTrait(AnywherePolicy):
    """Tasks of a fast machine type are spared; nobody's age counts."""

    def eviction_costs(self, victims):
        fast = np.array([value != "" for value in victims.trait("speed")], np.bool_)
        return np.where(fast[victims.task_class], 500, 100)


def test_a_valid_policy_may_have_eviction_costs():
    assert check(ByTrait()) == []


def test_only_a_policy_with_rack_labels_gets_inputs():
    styles, looks_not = AskedForData(), Asked()
    assert check(styles) == check(looks_not) == []
    assert any(inputs is None for inputs in styles.seen)
    assert max(len(inputs.near_set) for inputs in styles.seen if inputs is not None) > 10_000, "the large view has some"
    assert all(inputs is None for inputs in looks_not.seen)


@pytest.mark.slow
@pytest.mark.parametrize(("policy", "rule", "message"), BROKEN, ids=[type(policy).__name__ for policy, _, _ in BROKEN])
def test_a_broken_policy_is_detected(policy, rule, message):
    findings = check(policy)
    reported = [finding.message for finding in findings if finding.rule == rule]
    assert len(reported) == 1
    assert message in reported[0]
    assert not {finding.rule for finding in findings} & {"identity", "contract", "purity"} - {rule}


def test_every_rule_has_a_policy_that_breaks_it():
    assert {rule for _, rule, _ in BROKEN} == set(RULES)


def test_a_finding_names_the_view_and_the_count():
    (finding,) = check(Negative())
    assert finding.message.startswith("with 0 classes, 0 nodes, 0 tasks: policy broken: place leaves")
    assert finding.message.endswith(" more)")
    assert str(finding) == f"contract: {finding.message}"


def test_waived_rules_are_reported():
    class Deliberate(Alphabetical):
        waives = {"favourites": "it is made for demonstrations"}  # noqa: RUF012

    assert check(Deliberate()) == []
    assert waived(Deliberate()) == {"favourites": "it is made for demonstrations"}
    assert "waived  favourites: it is made for demonstrations" in report(Deliberate(), [])
    assert set(WAIVABLE) <= set(RULES)


def test_a_report_has_a_line_for_each_rule():
    lines = report(Alphabetical(), [Finding("favourites", "place depends on the order of nodes")])
    assert len(lines) == len(RULES)
    assert [line for line in lines if line.startswith("FAILED")] == [
        "FAILED  favourites: place depends on the order of nodes; a policy gives nodes that are alike the same costs, "
        "in whatever order they come"
    ]


def test_a_measurement_states_its_scale():
    scale = measure(AnywherePolicy())
    assert (scale.nodes, scale.classes) == (5000, 256)
    assert scale.seconds > 0
    assert scale.peak_bytes > 0


def test_views_cover_edge_cases():
    seen = list(views())
    for axis in ("requests", "allocatable", "task_class"):
        assert {0, 1} <= {len(getattr(view, axis)) for view in seen}
    assert any((view.free < 0).any() for view in seen)
    assert any(len(view.allocatable) and (view.allocatable == 0).all(axis=1).any() for view in seen)
    assert any("cpu" not in view.resources for view in seen)
    assert {view.measured_load is None for view in seen} == {True, False}
    assert any(view.inputs is not None and len(view.inputs.near_set) and len(view.inputs.rack_set) for view in seen)
    assert all(not array.flags.writeable for view in seen for array in arrays(view).values())


def test_every_field_of_a_view_is_classified_as_per_node_or_not():
    """A new field of View must be classified here as per node or not, and appear in the generated views."""
    others = {"resources", "requests", "priority", "waiting", "slot_offsets", "task_class"}
    others |= {"task_age_us", "expected_us", "measured_usage", "traits", "surroundings", "inputs"}
    assert {field.name for field in fields(View)} == others | set(PER_NODE)


def test_a_policy_must_have_its_registered_name():
    assert check(AnywherePolicy(), "anywhere") == []
    (finding,) = check(AnywherePolicy(), "everywhere")
    assert str(finding) == "identity: its name is 'anywhere', but it is registered as 'everywhere'; use one name"
