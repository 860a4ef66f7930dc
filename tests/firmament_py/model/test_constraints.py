"""Selectors, terms, taints and tolerations mean what they mean to Kubernetes."""

import pytest

from firmament_py.model.constraints import NodeDemand, Operator, Requirement, Taint, Term, Toleration, integer
from tests.builders import needs

LABELS = {"zone": "a", "cores": "8", "empty": "", "word": "eight", "minus": "-3"}


@pytest.mark.parametrize(
    ("requirement", "matches"),
    [
        pytest.param(needs("zone", "In", "a", "b"), True, id="in"),
        pytest.param(needs("zone", "In", "b"), False, id="in-other"),
        pytest.param(needs("zone", "In"), False, id="in-nothing"),
        pytest.param(needs("none", "In", "a"), False, id="in-absent"),
        pytest.param(needs("none", "In", ""), False, id="in-absent-is-not-empty"),
        pytest.param(needs("empty", "In", ""), True, id="in-empty-value"),
        pytest.param(needs("zone", "NotIn", "a"), False, id="notin"),
        pytest.param(needs("zone", "NotIn", "b"), True, id="notin-other"),
        pytest.param(needs("zone", "NotIn"), True, id="notin-nothing"),
        pytest.param(needs("none", "NotIn", "a"), True, id="notin-absent-matches"),
        pytest.param(needs("zone", "Exists"), True, id="exists"),
        pytest.param(needs("empty", "Exists"), True, id="exists-empty-value"),
        pytest.param(needs("none", "Exists"), False, id="exists-absent"),
        pytest.param(needs("zone", "DoesNotExist"), False, id="doesnotexist"),
        pytest.param(needs("none", "DoesNotExist"), True, id="doesnotexist-absent"),
        pytest.param(needs("cores", "Gt", "7"), True, id="gt"),
        pytest.param(needs("cores", "Gt", "8"), False, id="gt-equal"),
        pytest.param(needs("cores", "Lt", "9"), True, id="lt"),
        pytest.param(needs("cores", "Lt", "8"), False, id="lt-equal"),
        pytest.param(needs("cores", "Lt", "10"), True, id="lt-compares-numbers-not-text"),
        pytest.param(needs("minus", "Lt", "-2"), True, id="lt-negative"),
        pytest.param(needs("minus", "Gt", "+1"), False, id="gt-sign"),
        pytest.param(needs("word", "Gt", "0"), False, id="gt-of-a-word"),
        pytest.param(needs("word", "Lt", "99"), False, id="lt-of-a-word"),
        pytest.param(needs("empty", "Lt", "99"), False, id="lt-of-nothing"),
        pytest.param(needs("none", "Lt", "99"), False, id="lt-absent"),
        pytest.param(needs("cores", "Gt", "x"), False, id="gt-bound-is-a-word"),
    ],
)
def test_requirement(requirement, matches):
    assert requirement.matches(LABELS) is matches


@pytest.mark.parametrize(
    ("text", "value"),
    [
        pytest.param("0", 0, id="zero"),
        pytest.param("-1", -1, id="negative"),
        pytest.param("+1", 1, id="plus"),
        pytest.param("007", 7, id="leading-zeros"),
        pytest.param("9223372036854775807", 2**63 - 1, id="largest"),
        pytest.param("9223372036854775808", None, id="too-large"),
        pytest.param("-9223372036854775808", -(2**63), id="smallest"),
        pytest.param("-9223372036854775809", None, id="too-small"),
        pytest.param("", None, id="empty"),
        pytest.param("-", None, id="sign-only"),
        pytest.param("+-1", None, id="two-signs"),
        pytest.param(" 1", None, id="blank"),
        pytest.param("1_000", None, id="underscore"),
        pytest.param("1.0", None, id="fraction"),
        pytest.param("0x10", None, id="hexadecimal"),
        pytest.param("٣", None, id="another-script"),
        pytest.param("²", None, id="superscript"),
        pytest.param("9" * 5000, None, id="absurdly-long"),
        pytest.param("0" * 5000 + "7", 7, id="absurdly-padded"),
    ],
)
def test_integer(text, value):
    assert integer(text) == value


ZONE_A, ZONE_B, NAMED = needs("zone", "In", "a"), needs("zone", "In", "b"), needs("metadata.name", "In", "n1")
FIELDS = {"metadata.name": "n1"}


@pytest.mark.parametrize(
    ("term", "matches"),
    [
        pytest.param(Term(), False, id="empty-matches-nothing"),
        pytest.param(Term((ZONE_A,)), True, id="label"),
        pytest.param(Term((ZONE_A, ZONE_B)), False, id="all-must-hold"),
        pytest.param(Term((), (NAMED,)), True, id="field"),
        pytest.param(Term((ZONE_A,), (NAMED,)), True, id="both"),
        pytest.param(Term((ZONE_B,), (NAMED,)), False, id="field-does-not-make-up-for-label"),
        pytest.param(Term((NAMED,)), False, id="the-name-is-no-label"),
        pytest.param(Term((), (ZONE_A,)), False, id="a-label-is-no-field"),
    ],
)
def test_term(term, matches):
    assert term.matches(LABELS, FIELDS) is matches


@pytest.mark.parametrize(
    ("demand", "selects"),
    [
        pytest.param(NodeDemand(), True, id="nothing-demanded"),
        pytest.param(NodeDemand(affinity=((),)), False, id="no-term-can-match"),
        pytest.param(NodeDemand(affinity=((Term(),),)), False, id="only-an-empty-term"),
        pytest.param(NodeDemand(affinity=((Term((ZONE_B,)), Term((ZONE_A,))),)), True, id="one-term-is-enough"),
        pytest.param(
            NodeDemand(affinity=((Term((ZONE_A,)),), (Term((ZONE_B,)),))), False, id="one-term-of-every-group"
        ),
        pytest.param(NodeDemand((ZONE_B,), ((Term((ZONE_A,)),),)), False, id="selector-and-affinity"),
        pytest.param(NodeDemand((ZONE_A,)), True, id="selector"),
    ],
)
def test_demand(demand, selects):
    assert demand.selects(LABELS, FIELDS) is selects


GPU = Taint("gpu", "yes", "NoSchedule")


@pytest.mark.parametrize(
    ("toleration", "tolerates"),
    [
        pytest.param(Toleration("gpu", "Equal", "yes", "NoSchedule"), True, id="equal"),
        pytest.param(Toleration("gpu", "Equal", "no", "NoSchedule"), False, id="other-value"),
        pytest.param(Toleration("cpu", "Equal", "yes", "NoSchedule"), False, id="other-key"),
        pytest.param(Toleration("gpu", "Equal", "yes", "NoExecute"), False, id="other-effect"),
        pytest.param(Toleration("gpu", "Equal", "yes", ""), True, id="empty-effect-is-every-effect"),
        pytest.param(Toleration("gpu", "", "yes", "NoSchedule"), True, id="empty-operator-is-equal"),
        pytest.param(Toleration("gpu", "", "no", "NoSchedule"), False, id="empty-operator-other-value"),
        pytest.param(Toleration("gpu", "Exists", "", ""), True, id="exists"),
        pytest.param(Toleration("gpu", "Exists", "no", ""), True, id="exists-ignores-the-value"),
        pytest.param(Toleration("cpu", "Exists", "", ""), False, id="exists-other-key"),
        pytest.param(Toleration("", "Exists", "", ""), True, id="empty-key-exists-is-everything"),
        pytest.param(Toleration("", "Exists", "", "NoExecute"), False, id="everything-of-another-effect"),
        pytest.param(Toleration("", "Equal", "yes", ""), False, id="empty-key-equal-is-nothing"),
        pytest.param(Toleration("", "", "", ""), False, id="all-empty-is-nothing"),
        pytest.param(Toleration("gpu", "Gt", "1", ""), False, id="gt-of-a-word"),
        pytest.param(Toleration("gpu", "Near", "yes", ""), False, id="an-operator-that-is-not-known"),
    ],
)
def test_toleration(toleration, tolerates):
    assert toleration.tolerates(GPU) is tolerates


@pytest.mark.parametrize(
    ("operator", "bound", "tolerates"),
    [
        pytest.param("Gt", "949", True, id="gt"),
        pytest.param("Gt", "950", False, id="gt-equal"),
        pytest.param("Gt", "-1", True, id="gt-negative"),
        pytest.param("Lt", "951", True, id="lt"),
        pytest.param("Lt", "950", False, id="lt-equal"),
        pytest.param("Gt", "0949", False, id="leading-zero-is-no-number"),
        pytest.param("Gt", "+1", False, id="plus-is-no-number"),
        pytest.param("Gt", "", False, id="nothing-is-no-number"),
        pytest.param("Lt", str(2**63), False, id="too-large-is-no-number"),
    ],
)
def test_tolerations_that_compare(operator, bound, tolerates):
    assert Toleration("sla", operator, bound).tolerates(Taint("sla", "950", "NoSchedule")) is tolerates


def test_an_empty_taint_value_equals_an_empty_value():
    assert Toleration("k").tolerates(Taint("k", "", "NoExecute"))


@pytest.mark.parametrize(
    ("effect", "repels"),
    [("NoSchedule", True), ("NoExecute", True), ("PreferNoSchedule", False), ("", False)],
)
def test_which_effects_keep_tasks_away(effect, repels):
    taint = Taint("k", "v", effect)
    assert taint.repels is repels
    assert (NodeDemand().untolerated((taint,)) == taint) is repels


def test_the_first_untolerated_taint_is_named():
    soft, first, second = Taint("s", "", "PreferNoSchedule"), Taint("a", "", "NoExecute"), GPU
    assert NodeDemand().untolerated((soft, first, second)) == first
    assert NodeDemand(tolerations=(Toleration("a", "Exists"),)).untolerated((soft, first, second)) == second
    both = NodeDemand(tolerations=(Toleration("a", "Exists"), Toleration("gpu", "Exists")))
    assert both.untolerated((soft, first, second)) is None


def test_operators_are_spelled_as_kubernetes_spells_them():
    assert {*Operator} == {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"}
    assert Requirement("k", Operator("In"), ("v",)).matches({"k": "v"})
