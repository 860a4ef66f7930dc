"""Finding policies by name, and their options by text."""

from importlib.metadata import EntryPoint
from typing import Literal

import pytest

from firmament_py.policy import API_VERSION, AnywherePolicy, Costs, Policy, View, registry
from firmament_py.policy.registry import GROUP, UnknownPolicyError, available, load

PATH = "tests.firmament_py.policy.test_registry"


class Optional(AnywherePolicy):
    """Takes options.

    And further text here, which is not listed.
    """

    name = "optional"

    def __init__(self, depth: int = 3, weight: float = 0.5, keep_old: bool = False, zone: str = "any") -> None:
        if depth < 0:
            raise ValueError("depth is below 0; give 0 or more")
        self.values = (depth, weight, keep_old, zone)


class Chosen(AnywherePolicy):
    """Has an option with a choice of two texts."""

    def __init__(self, by: Literal["tasks", "share"] = "tasks") -> None:
        self.by = by


class Futuristic(AnywherePolicy):
    """Needs a newer version of the interface."""

    api_version = API_VERSION + 1


class Current(AnywherePolicy):
    """States the current version of the interface."""

    api_version = API_VERSION


class Outdated(AnywherePolicy):
    """States version 1 of the interface."""

    api_version = 1


class Priced(AnywherePolicy):
    """Has the method of version 1, without which its base would decide in silence."""

    def price(self, view):
        raise NotImplementedError


class Vague(AnywherePolicy):
    """States an invalid version of the interface."""

    api_version = "newest"


class Breaking(AnywherePolicy):
    """Fails in its constructor."""

    def __init__(self) -> None:
        raise ZeroDivisionError("ouch")


class Nameless:
    """Costs, but has no name."""

    def costs(self, view: View) -> Costs:
        return AnywherePolicy().costs(view)


class WithoutCosts:
    """Has a name and no costs."""

    name = "without-costs"


class OneRackLabel(AnywherePolicy):
    """A text instead of a tuple."""

    rack_labels = "topology.kubernetes.io/rack"


class Demanding(AnywherePolicy):
    """Needs an option."""

    name = "demanding"

    def __init__(self, topology: str) -> None:
        self.topology = topology


class Derived(Policy):
    """Inherits the protocol, as typed code may."""

    name = "derived"

    def costs(self, view: View) -> Costs:
        return AnywherePolicy().costs(view)


class Leaving(AnywherePolicy):
    """Exits in its constructor."""

    def __init__(self) -> None:
        raise SystemExit(0)


class Misspelt(AnywherePolicy):
    """An annotation that names nothing."""

    name = "misspelt"

    def __init__(self, depth: "registry.Depth" = 3) -> None:  # type: ignore[name-defined]
        self.depth = depth


class _Unreadable(type):
    @property
    def __signature__(cls) -> object:
        raise RuntimeError("no signature")


class Unreadable(AnywherePolicy, metaclass=_Unreadable):
    """Its signature cannot be read."""


NOT_CALLABLE = "no factory at all"


def _entry(name: str, target: str) -> EntryPoint:
    return EntryPoint(name=name, value=target if ":" in target else f"{PATH}:{target}", group=GROUP)


@pytest.fixture(autouse=True)
def entries(monkeypatch):
    """The installed entry points; tests add to the list."""
    found = [
        _entry("spread", "firmament_py.policy:AnywherePolicy"),
        _entry("optional", "Optional"),
    ]
    monkeypatch.setattr(registry, "entry_points", lambda group: [e for e in found if e.group == group])
    return found


def test_a_policy_is_loaded_by_its_name():
    assert isinstance(load("spread", {}), AnywherePolicy)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param("spred", "no policy 'spred' (did you mean spread?); there are: optional, spread", id="close"),
        pytest.param("zzz", "no policy 'zzz'; there are: optional, spread", id="far"),
        pytest.param("", "no policy ''; there are: optional, spread", id="empty"),
    ],
)
def test_an_unknown_policy_lists_the_known_ones(name, message):
    with pytest.raises(UnknownPolicyError) as caught:
        load(name, {})
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("options", "values"),
    [
        pytest.param({}, (3, 0.5, False, "any"), id="defaults"),
        pytest.param({"depth": "7"}, (7, 0.5, False, "any"), id="int"),
        pytest.param({"weight": "1e-3"}, (3, 0.001, False, "any"), id="float"),
        pytest.param({"keep-old": "true"}, (3, 0.5, True, "any"), id="bool-with-dash"),
        pytest.param({"keep_old": "False", "zone": "b=c"}, (3, 0.5, False, "b=c"), id="underscore-and-text"),
    ],
)
def test_options_are_converted_to_the_types_of_the_constructor(options, values):
    policy = load("optional", options)
    assert isinstance(policy, Optional)
    assert policy.values == values


@pytest.mark.parametrize(
    ("options", "message"),
    [
        pytest.param({"depht": "1"}, "no option 'depht'; it has: depth, weight, keep-old, zone", id="unknown"),
        pytest.param({"depth": "two"}, "option depth is 'two'; give a value of type int", id="not-an-int"),
        pytest.param({"depth": "1.5"}, "option depth is '1.5'; give a value of type int", id="fraction"),
        pytest.param({"weight": "x"}, "option weight is 'x'; give a value of type float", id="not-a-float"),
        pytest.param({"keep-old": "yes"}, "option keep-old is 'yes'; give a value of type bool", id="not-a-bool"),
        pytest.param({"depth": "-1"}, "policy optional: depth is below 0; give 0 or more", id="policy-refuses"),
    ],
)
def test_invalid_options_are_named(options, message):
    with pytest.raises(UnknownPolicyError) as caught:
        load("optional", options)
    assert message in str(caught.value)


def test_a_policy_without_options_says_so():
    with pytest.raises(UnknownPolicyError, match="policy spread has no option 'depth'; it has: none"):
        load("spread", {"depth": "1"})


def test_two_distributions_with_one_name_are_refused(entries):
    entries.append(_entry("spread", "Optional"))
    with pytest.raises(UnknownPolicyError, match=r"'spread' is registered more than once: .*AnywherePolicy.*Optional"):
        load("spread", {})


def test_one_distribution_seen_twice_is_not_a_duplicate(entries):
    entries.append(entries[0])
    assert isinstance(load("spread", {}), AnywherePolicy)


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("no.such.module:Thing", "ModuleNotFoundError", id="module"),
        pytest.param("NoSuchClass", "AttributeError", id="class"),
        pytest.param("Unreadable", "its options cannot be read: RuntimeError: no signature", id="signature"),
    ],
)
def test_a_policy_that_cannot_be_loaded_is_listed_with_its_error(entries, target, message):
    entries.append(_entry("broken", target))
    with pytest.raises(UnknownPolicyError, match=f"policy broken cannot be loaded: {message}"):
        load("broken", {})
    by_name = {info.name: info for info in available()}
    assert list(by_name) == ["broken", "optional", "spread"]
    assert message in by_name["broken"].error
    assert by_name["spread"].error == ""


def test_listed_policies_and_options():
    (optional, spread) = available()
    assert (optional.name, optional.summary) == ("optional", "Takes options.")
    assert optional.options == {
        "depth": "INTEGER  [default: 3]",
        "weight": "FLOAT  [default: 0.5]",
        "keep-old": "BOOLEAN  [default: False]",
        "zone": "TEXT  [default: any]",
    }
    assert (spread.name, spread.options) == ("spread", {})


def test_a_missing_option_is_named(entries):
    entries.append(_entry("demanding", "Demanding"))
    with pytest.raises(
        UnknownPolicyError, match="policy demanding needs a value for: topology; give it with --policy-option"
    ):
        load("demanding", {})


def test_a_policy_that_cannot_be_called_does_not_hide_the_others(entries):
    entries.append(_entry("odd", "NOT_CALLABLE"))
    by_name = {info.name: info for info in available()}
    assert {"optional", "spread"} <= set(by_name)
    assert by_name["odd"].error.endswith(f"{PATH}:NOT_CALLABLE is not a class")


def test_a_policy_that_inherits_the_protocol_has_none_of_its_parameters(entries):
    entries.append(_entry("derived", "Derived"))
    with pytest.raises(UnknownPolicyError, match="it has: none"):
        load("derived", {"args": "1"})


def test_an_option_with_a_choice_of_texts(entries):
    entries.append(_entry("chosen", "Chosen"))
    chosen = load("chosen", {"by": "share"})
    assert isinstance(chosen, Chosen)
    assert chosen.by == "share"
    with pytest.raises(UnknownPolicyError, match="policy chosen: option by is 'size'; give one of: tasks, share"):
        load("chosen", {"by": "size"})
    assert {info.name: info.options for info in available()}["chosen"] == {"by": "tasks|share  [default: tasks]"}


@pytest.mark.parametrize("name", ["Outdated", "Priced"])
def test_a_policy_for_version_1_of_the_interface_is_refused(entries, name):
    entries += [_entry("old", name)]
    with pytest.raises(UnknownPolicyError) as caught:
        load("old", {})
    assert str(caught.value) == (
        f"policy old was written for version 1 of the policy interface, not {API_VERSION}: install a newer release of "
        f"the package that has the policy, or rename what docs/policies.md lists"
    )


def test_a_policy_for_a_newer_interface_is_refused(entries):
    entries += [_entry("futuristic", "Futuristic"), _entry("current", "Current"), _entry("vague", "Vague")]
    with pytest.raises(UnknownPolicyError) as caught:
        load("futuristic", {})
    assert str(caught.value) == (
        f"policy futuristic needs version {API_VERSION + 1} of the policy interface, and this release has "
        f"{API_VERSION}: install a newer poseidon-firmament, or an older release of the package that has the policy"
    )
    assert {info.name: info.error for info in available()}["futuristic"] == str(caught.value)
    assert load("current", {}).name == "anywhere"
    with pytest.raises(UnknownPolicyError, match="its api_version is 'newest'; give a whole number"):
        load("vague", {})


@pytest.mark.parametrize(
    ("target", "message"),
    [
        pytest.param("Breaking", "cannot be created: ZeroDivisionError: ouch", id="constructor"),
        pytest.param("Leaving", "cannot be created: SystemExit: 0", id="constructor-exits"),
        pytest.param("Nameless", "needs a text `name` and a method costs", id="no-name"),
        pytest.param("WithoutCosts", "needs a text `name` and a method costs", id="no-costs"),
        pytest.param("OneRackLabel", "rack_labels is 'topology.kubernetes.io/rack'; give a tuple", id="rack-labels"),
    ],
)
def test_a_class_that_is_not_a_policy_is_named(entries, target, message):
    entries.append(_entry("odd", target))
    with pytest.raises(UnknownPolicyError, match=f"policy odd .*{message}"):
        load("odd", {})


def test_an_option_with_an_invalid_annotation_is_text(entries):
    entries.append(_entry("misspelt", "Misspelt"))
    assert {info.name: info.options for info in available()}["misspelt"] == {"depth": "registry.Depth  [default: 3]"}
    assert load("misspelt", {"depth": "4"}).depth == "4"  # type: ignore[attr-defined]


def test_an_option_without_a_default_is_listed_as_required(entries):
    entries.append(_entry("demanding", "Demanding"))
    assert {info.name: info.options for info in available()}["demanding"] == {"topology": "TEXT  [required]"}
