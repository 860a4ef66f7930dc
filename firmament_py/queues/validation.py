"""Finds what is wrong in a description of queues, and leaves it out or corrects it so that other queues are safe."""

import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from firmament_py.model.queues import UNLIMITED, Flavor, LocalQueue, QueueDefinition, QueueTree, Quota


@dataclass(frozen=True, slots=True)
class Problem:
    """`queue` is a name, empty if the tree itself is meant; `reason` says what was found, what is done, the remedy.
    `id` is that of the queue, as two kinds of queues may share a name; 0: of the tree, or of one that is left out."""

    queue: str
    field: str
    reason: str
    id: int = 0


@dataclass(frozen=True, slots=True)
class Checked:
    """A description without contradictions. `closed` has ids of queues that take no tasks until they are corrected."""

    tree: QueueTree
    problems: tuple[Problem, ...]
    closed: frozenset[int]


@dataclass(slots=True)
class _Report:
    problems: list[Problem] = field(default_factory=list)
    closed: set[int] = field(default_factory=set)

    def add(self, queue: str, name: str, reason: str, identifier: int = 0) -> None:
        self.problems.append(Problem(queue, name, reason, identifier))


def check(tree: QueueTree) -> Checked:
    """The tree without what is wrong in it, and a problem for each correction; linear in the size of the tree."""
    report = _Report()
    flavors = _flavors(tree.flavors, report)
    names = frozenset(flavor.name for flavor in flavors)
    queues = [_corrected(queue, names, report) for queue in _distinct(tree.queues, report)]
    tree = replace(tree, queues=tuple(_rooted(queues, report)), flavors=flavors)
    for name, least, remedy in (
        ("usage_half_life_s", 0.0, "state the seconds after which past usage counts half, or 0"),
        ("usage_sampling_s", 0.0, "state the seconds that a task counts when it is admitted, or 0"),
        ("usage_weight", 0.0, "state 0 to ignore past usage, or a positive number"),
        ("reclaim_ratio", 1.0, "state 1 or a larger number"),
    ):
        value = getattr(tree, name)
        if not least <= value < math.inf:
            report.add("", name, f"{value} counts as {least:g}: {remedy}")
            corrected: dict[str, Any] = {name: least}
            tree = replace(tree, **corrected)
    for resource, value in tree.resource_weights.items():
        if not 0.0 <= value < math.inf:
            report.add("", f"resource_weights[{resource}]", f"{value} counts as 0: state 0 or a positive number")
            tree = replace(tree, resource_weights={**tree.resource_weights, resource: 0.0})
    tree = replace(tree, local_queues=tuple(_local_queues(tree, report)))
    return Checked(tree, tuple(report.problems), frozenset(report.closed))


def _local_queues(tree: QueueTree, report: _Report) -> Iterator[LocalQueue]:
    ids = {queue.id for queue in tree.queues} | {0}
    for each in tree.local_queues:
        if each.id in ids:
            report.add(each.name, "id", "something else has this id and the local queue is left out: rename it")
            continue
        ids.add(each.id)

        def add(name: str, reason: str, of: str = each.name) -> None:
            report.add(of, name, reason)

        yield replace(each, weight=_weight(each.weight, "weight", add))


def _flavors(flavors: tuple[Flavor, ...], report: _Report) -> tuple[Flavor, ...]:
    known: dict[str, Flavor] = {}
    for flavor in flavors:
        if known.setdefault(flavor.name, flavor) is not flavor:
            report.add(
                "", "flavors", f"{flavor.name!r} is described twice and the first description is used: remove one"
            )
    return tuple(known.values())


def _distinct(queues: tuple[QueueDefinition, ...], report: _Report) -> Iterator[QueueDefinition]:
    """Those with an id of their own. Names are for messages: a Cohort and a ClusterQueue of Kueue may share one."""
    ids: dict[int, str] = {}
    for queue in queues:
        if queue.id == 0:
            report.add(queue.name, "id", "0 stands for no queue and this queue is left out: state another id")
        elif queue.id in ids:
            other = ids[queue.id]
            report.add(
                queue.name, "id", f"queue {other!r} has the same id and this one is left out: rename one of them"
            )
        else:
            ids[queue.id] = queue.name
            yield queue


def _corrected(queue: QueueDefinition, flavors: frozenset[str], report: _Report) -> QueueDefinition:
    def add(name: str, reason: str) -> None:
        report.add(queue.name, name, reason, queue.id)

    weight = _weight(queue.weight, "weight", add)
    times: dict[str, Any] = {}
    for name in ("preempt_min_runtime_s", "reclaim_min_runtime_s", "preemption_delay_s"):
        if not 0.0 <= getattr(queue, name) < math.inf:
            add(name, f"{getattr(queue, name)} s counts as 0: state a duration of 0 s or longer")
            times[name] = 0.0
    if queue.evictions_per_hour is not None and queue.evictions_per_hour < 0:
        add("evictions_per_hour", f"{queue.evictions_per_hour} counts as 0: state 0 or a positive number")
        times["evictions_per_hour"] = 0
    groups = _groups(queue, add)
    quotas = tuple(_quotas(queue, flavors, groups, add))
    return replace(queue, weight=weight, resource_groups=groups, quotas=quotas, **times)


def _weight(weight: float, name: str, add: Callable[[str, str], None]) -> float:
    if 0.0 <= weight < math.inf:
        return weight
    add(name, f"{weight} counts as 0, so the queue has no share of a surplus: state 0 or a positive number")
    return 0.0


def _groups(queue: QueueDefinition, add: Callable[[str, str], None]) -> tuple[tuple[str, ...], ...]:
    """The queue's resource groups, each resource in one of them; one of all its resources if it states none."""
    if not queue.resource_groups:
        resources = tuple(dict.fromkeys(quota.resource for quota in queue.quotas))
        return (resources,) if resources else ()
    times = Counter(resource for group in queue.resource_groups for resource in dict.fromkeys(group))
    for resource in (resource for resource, count in times.items() if count > 1):
        add(
            "resource_groups",
            f"{resource!r} is in {times[resource]} groups and only the first one counts: name it once",
        )
    seen: set[str] = set()
    groups = []
    for group in queue.resource_groups:
        groups.append(tuple(resource for resource in dict.fromkeys(group) if resource not in seen))
        seen.update(group)
    return tuple(group for group in groups if group)


def _quotas(
    queue: QueueDefinition,
    flavors: frozenset[str],
    groups: tuple[tuple[str, ...], ...],
    add: Callable[[str, str], None],
) -> Iterator[Quota]:
    group_of = {resource: number for number, group in enumerate(groups) for resource in group}
    used_in: dict[str, int] = {}
    seen: set[tuple[str, str]] = set()
    for quota in queue.quotas:
        name = f"quotas[{quota.flavor}/{quota.resource}]"
        group = group_of.get(quota.resource)
        if quota.flavor not in flavors:
            add(name, f"there is no flavor {quota.flavor!r} and this quota is left out: create it or correct the name")
        elif group is None:
            add(name, f"{quota.resource!r} is in no resource group and this quota is left out: add it to a group")
        elif used_in.setdefault(quota.flavor, group) != group:
            add(name, "the flavor is used in two resource groups and this quota is left out: use it in one group")
        elif (quota.flavor, quota.resource) in seen:
            add(name, "the quota is stated twice and only the first one counts: remove one")
        else:
            seen.add((quota.flavor, quota.resource))
            yield _amounts(quota, name, add)


def _amounts(quota: Quota, name: str, add: Callable[[str, str], None]) -> Quota:
    amounts: dict[str, Any] = {}
    for amount in ("nominal", "borrowing_limit", "lending_limit", "limit"):
        value = getattr(quota, amount)
        if value is not None and value < 0:
            add(f"{name}.{amount}", f"{value} is negative and counts as 0: state 0 or a larger amount")
        amounts[amount] = None if value is None else min(max(value, 0), UNLIMITED)
    weight = None if quota.weight is None else _weight(quota.weight, f"{name}.weight", add)
    quota = replace(quota, weight=weight, **amounts)
    if quota.limit is not None and quota.nominal > quota.limit:
        if quota.nominal < UNLIMITED:  # an unlimited entitlement within a limit is no contradiction
            add(
                f"{name}.limit", f"{quota.limit} is below the nominal {quota.nominal}, which is lowered to it: raise it"
            )
        quota = replace(quota, nominal=quota.limit)
    return quota


def _rooted(queues: list[QueueDefinition], report: _Report) -> Iterator[QueueDefinition]:
    """The queues, each with a path to a root: members of a cycle, and those of unknown parents, become closed roots."""
    by_id = {queue.id: queue for queue in queues}
    state: dict[int, bool] = {}  # whether the queue is part of a cycle; absent: unknown
    for queue in queues:
        path: dict[int, None] = {}
        current = queue.id
        while current in by_id and current not in state and current not in path:
            path[current] = None
            current = by_id[current].parent
        ids = list(path)
        first = ids.index(current) if current in path else len(ids)
        state.update({identifier: number >= first for number, identifier in enumerate(ids)})
    for queue in queues:
        if state[queue.id]:
            reason = "the queue is its own ancestor, so it and the queues below it take no tasks: correct the parents"
        elif queue.parent and queue.parent not in by_id:
            reason = "the queue above it does not exist, so it takes no tasks: create that or correct the parent"
        else:
            yield queue
            continue
        report.add(queue.name, "parent", reason, queue.id)
        report.closed.add(queue.id)
        yield replace(queue, parent=0)
