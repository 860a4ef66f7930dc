"""What any policy must keep, as a check that its author can run: `firmament check-policy NAME`, or in a test

    from firmament_py.policy.conformance import check

    def test_my_policy_conforms():
        assert check(MyPolicy()) == []

The policy is asked for the costs of generated views: empty and tiny ones, ones with enormous amounts, with
over-committed nodes, with nodes that offer nothing, and ordinary ones; with data that tasks read, if it has
`rack_labels`. The views are the same in every run.

A policy that breaks a rule on purpose lists it in an attribute `waives`, a mapping of rules to reasons; only those in
WAIVABLE can be waived.
"""

import tracemalloc
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from time import perf_counter

import numpy as np

from firmament_py.model.arrays import I64
from firmament_py.policy.api import API_VERSION, Aggregators, Costs, Policy, View, rack_labels
from firmament_py.policy.locality import DataCosts
from firmament_py.policy.preemption import Victims
from firmament_py.policy.sample_views import ages, arrays, large, reversed_nodes, victims, views
from firmament_py.policy.validation import (
    PolicyError,
    checked_costs,
    checked_eviction_costs,
    checked_moving_costs,
    checked_place_kinds,
)

RULES: Mapping[str, str] = {
    "identity": "has a text name, a method costs(view), and an api_version that this release has",
    "contract": "answers every view with Costs of the right shapes, types and ranges",
    "warnings": "computes without numpy's warnings",
    "purity": "leaves the view as it is",
    "determinism": "gives the same view the same costs, whatever it was asked before",
    "favourites": "gives nodes that are alike the same costs, in whatever order they come",
    "age": "never lets a task lose by waiting: of one class, the older costs no less to leave waiting",
    "starvation": "places a task that has waited for ten years before any new one of its priority",
    "eviction": "gives running tasks the same costs of eviction each time, and no lower ones where more work is lost",
    "kinds": "gives the classes that place_kinds() says are alike the same placement costs",
    "memory": "takes 512 MiB at most for 5,000 nodes x 256 classes",
}
"""What each rule demands, as the end of a sentence that begins with "the policy"."""

WAIVABLE = ("favourites", "starvation")

MEMORY_MAX = 512 << 20
"""Peak memory that the costs of a large view may take, bytes."""

_TEN_YEARS_US = 10 * 365 * 86_400 * 1_000_000

_AXES: Mapping[str, tuple[str, ...]] = {
    "place": ("class", "node"),
    "slot": ("node", "slot"),
    "wait": ("task",),
    "fill": (),
    "soft_limit": ("class", "node"),
    "soft_limit_cost": ("class",),
    "stage": ("class",),
    "node_limit": ("node",),
    "data": ("task", "node"),
    "delay": ("task",),
    "aggregators": ("class", "node"),
}
"""The axes of each field of Costs in full; of data: what it costs each task on each node;
of aggregators: the soft limit of each class at each node's group."""

_Answer = dict[str, I64]
"""The fields of Costs that are given, repeated to their full shapes."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule that a policy breaks, and how it does."""

    rule: str
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {self.message}"


@dataclass(frozen=True, slots=True)
class Scale:
    """What the costs of a large view take to compute."""

    nodes: int
    classes: int
    seconds: float
    peak_bytes: int


def check(policy: Policy, registered_as: str = "") -> list[Finding]:
    """The rules that `policy` breaks, at most one finding for each; empty: none.

    registered_as: the name of its entry point, if it has one.
    """
    found = _Findings(policy)
    _check_identity(policy, registered_as, found)
    if found.of:
        return found.listed()
    shown = [_as_shown(policy, view) for view in views()]
    answers = [(view, _ask(policy, view, found)) for view in shown]
    for view, before in reversed(answers):
        if before is not None:
            _check_again(policy, view, before, found)
            _check_order(policy, view, before, found)
            _check_age(view, before, found)
            _check_kinds(policy, view, before, found)
    _check_ages(policy, found)
    _check_evictions(policy, found)
    if not found.of:  # a broken policy could take any amount of memory and time
        try:
            scale = measure(policy)
        except PolicyError as error:
            found.add("contract", large(), str(error))
            return found.listed()
        if scale.peak_bytes > MEMORY_MAX:
            found.add("memory", None, f"it takes {scale.peak_bytes >> 20} MiB at its peak; work on fewer axes at once")
    return found.listed()


def waived(policy: Policy) -> dict[str, str]:
    """The rules that the policy breaks on purpose -> its reasons."""
    reasons = getattr(policy, "waives", {})
    return dict(reasons) if isinstance(reasons, Mapping) else {}


def measure(policy: Policy) -> Scale:
    """Measures time and peak memory with a large view. Raises PolicyError."""
    view = _as_shown(policy, large())
    started = perf_counter()
    checked_costs(policy, view)
    seconds = perf_counter() - started
    tracemalloc.start()
    try:
        checked_costs(policy, view)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    return Scale(len(view.allocatable), len(view.requests), seconds, peak)


def _as_shown(policy: Policy, view: View) -> View:
    """The view as a round would show it: inputs only to a policy with rack_labels."""
    return view if rack_labels(policy) is not None else replace(view, inputs=None)


class _Findings:
    """Collects breaches: of each rule the first case, and how many there are."""

    def __init__(self, policy: Policy) -> None:
        self._waived = {rule for rule in waived(policy) if rule in WAIVABLE}
        self.of: dict[str, tuple[str, int]] = {}

    def add(self, rule: str, view: View | None, what: str) -> None:
        if rule not in self._waived:
            first, count = self.of.get(rule, (what if view is None else f"{_described(view)}: {what}", 0))
            self.of[rule] = first, count + 1

    def listed(self) -> list[Finding]:
        order = list(RULES)
        return [
            Finding(rule, first if count == 1 else f"{first} (and {count - 1} more)")
            for rule, (first, count) in sorted(self.of.items(), key=lambda item: order.index(item[0]))
        ]


def _described(view: View) -> str:
    sizes = (len(view.requests), len(view.allocatable), len(view.task_class))
    return "with " + ", ".join(
        f"{size} {name}" for size, name in zip(sizes, ("classes", "nodes", "tasks"), strict=True)
    )


def _check_identity(policy: Policy, registered_as: str, found: _Findings) -> None:
    name = getattr(policy, "name", None)
    if not isinstance(name, str) or not name:
        found.add("identity", None, f"its name is {name!r}; give it an attribute `name`, a text")
    elif registered_as and name != registered_as:
        found.add("identity", None, f"its name is {name!r}, but it is registered as {registered_as!r}; use one name")
    if not callable(getattr(policy, "costs", None)):
        found.add("identity", None, "it has no method costs(view)")
    version = getattr(policy, "api_version", API_VERSION)
    if version != API_VERSION:
        found.add("identity", None, f"its api_version is {version!r}, and this release has {API_VERSION}")
    try:
        rack_labels(policy)
    except TypeError as error:
        found.add("identity", None, f"its {error}")
    waives = getattr(policy, "waives", {})
    if not isinstance(waives, Mapping):
        found.add("identity", None, f"its waives is {waives!r}; give a mapping of rules to reasons")
    for rule in waived(policy):
        if rule not in WAIVABLE:
            found.add("identity", None, f"it waives {rule!r}; only these can be waived: {', '.join(WAIVABLE)}")


def _ask(policy: Policy, view: View, found: _Findings) -> _Answer | None:
    """Its costs in full; None: they break the contract."""
    before = {name: array.copy() for name, array in arrays(view).items()}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            costs = checked_costs(policy, view)
        except PolicyError as error:
            # numpy says "read-only" when an array of the view is written to
            found.add("purity" if "read-only" in str(error) else "contract", view, str(error))
            return None
    for warning in caught[:1]:
        found.add("warnings", view, f"{warning.category.__name__}: {warning.message}")
    for name, array in arrays(view).items():
        if not np.array_equal(array, before[name], equal_nan=True):
            found.add("purity", view, f"it changes view.{name}")
            array.flags.writeable = True
            array[...] = before[name]
            array.flags.writeable = False
    return _in_full(costs, view)


def _check_again(policy: Policy, view: View, before: _Answer, found: _Findings) -> None:
    again = _ask(policy, view, found)
    if again is not None and (field := _difference(before, again)):
        found.add("determinism", view, f"{field} differs from what it was for the same view")


def _check_order(policy: Policy, view: View, before: _Answer, found: _Findings) -> None:
    """With the nodes reversed the costs are reversed, too. Among the nodes are some that are alike: these swap."""
    costs = _ask(policy, reversed_nodes(view), found)
    if costs is None:
        return
    expected = {
        field: np.flip(array, _AXES[field].index("node")) if "node" in _AXES[field] else array
        for field, array in before.items()
    }
    if field := _difference(expected, costs):
        found.add("favourites", view, f"{field} depends on the order of nodes")


def _check_age(view: View, costs: _Answer, found: _Findings) -> None:
    order = np.lexsort((view.task_age_us, view.task_class))
    same = np.diff(view.task_class[order]) == 0
    falls = same & (np.diff(costs["wait"][order]) < 0)
    if falls.any():
        at = int(np.flatnonzero(falls)[0])
        younger, older = (int(view.task_age_us[order[at + i]]) / 1e6 for i in (0, 1))
        found.add("age", view, f"leaving a task waiting costs less at an age of {older:g} s than of {younger:g} s")


def _check_ages(policy: Policy, found: _Findings) -> None:
    """Of classes of one priority, however long their tasks expect to run, old tasks go before new ones."""
    view = ages(fresh_us=1_000_000, old_us=_TEN_YEARS_US)
    costs = _ask(policy, view, found)
    if costs is None:
        return
    _check_age(view, costs, found)
    old = view.task_age_us == _TEN_YEARS_US
    if costs["wait"][old].min() <= costs["wait"][~old].max():
        found.add(
            "starvation", view, "a task that has waited for ten years costs no more than a new one of another class"
        )


def _check_evictions(policy: Policy, found: _Findings) -> None:
    """Of each of some classes, tasks that have run for the same time and lose more and more of it."""
    for sample in victims():
        before = [column.copy() for column in (sample.task_class, sample.run_us, sample.lost_us)]
        order = np.lexsort((before[2], before[1], before[0]))
        alike = (np.diff(before[0][order]) == 0) & (np.diff(before[1][order]) == 0)
        for ask, doing in ((checked_eviction_costs, "evicting"), (checked_moving_costs, "moving")):
            try:
                costs, again = ask(policy, sample), ask(policy, sample)
            except PolicyError as error:
                found.add("purity" if "read-only" in str(error) else "contract", None, str(error))
                return
            if costs is None or again is None:
                continue
            if not np.array_equal(costs, again):
                method = ask.__name__.removeprefix("checked_")
                found.add("eviction", None, f"{method}() differs from what it was for the same tasks")
            if (alike & (np.diff(costs[order]) < 0)).any():
                found.add("eviction", None, f"{doing} a task costs less than {doing} one like it that loses less work")


def _check_kinds(policy: Policy, view: View, costs: _Answer, found: _Findings) -> None:
    none = np.zeros(0, np.int64)
    running = Victims(view.resources, view.requests, view.priority, view.traits, none, none, none)
    try:
        kinds = checked_place_kinds(policy, running)
    except PolicyError as error:
        found.add("purity" if "read-only" in str(error) else "contract", view, str(error))
        return
    if kinds is None or not len(kinds):
        return
    _, first, kind = np.unique(kinds, return_index=True, return_inverse=True)
    if (costs["place"] != costs["place"][first[kind]]).any():
        found.add("kinds", view, "place differs between classes of one number")


def _difference(one: _Answer, other: _Answer) -> str:
    """The first field that differs."""
    for field in _AXES:
        if not np.array_equal(one.get(field, ()), other.get(field, ())):
            return field
    return ""


def _in_full(costs: Costs, view: View) -> _Answer:
    """The fields that are given, repeated to their shapes; copies."""
    sizes = {
        "class": len(view.requests),
        "node": len(view.allocatable),
        "slot": len(view.slot_offsets),
        "task": len(view.task_class),
    }
    answer = {}
    for field in fields(Costs):
        given = getattr(costs, field.name)
        if isinstance(given, DataCosts):
            # tasks that read nothing have set -1, so their row goes last
            rows = [given.row(s) for s in (*range(len(given.anywhere)), -1)]
            given = np.stack(rows)[given.of_task]
        if isinstance(given, Aggregators):
            of_node = np.append(given.soft_limit, np.full((len(given.soft_limit), 1), -1), axis=1)[:, given.of_node]
            given = np.where(given.cost[:, None] > 0, of_node, -1)
        if given is not None:
            answer[field.name] = np.broadcast_to(given, [sizes[axis] for axis in _AXES[field.name]]).copy()
    return answer


def report(policy: Policy, findings: Sequence[Finding]) -> list[str]:
    """A line of text for each rule."""
    by_rule = {finding.rule: finding.message for finding in findings}
    excused = waived(policy)
    lines = []
    for rule, demand in RULES.items():
        if rule in by_rule:
            lines.append(f"FAILED  {rule}: {by_rule[rule]}; a policy {demand}")
        elif rule in excused and rule in WAIVABLE:
            lines.append(f"waived  {rule}: {excused[rule]}")
        else:
            lines.append(f"ok      {rule}: {demand}")
    return lines
