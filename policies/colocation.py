"""Interference between tasks on one machine, by their kind: sheep interfere little, turtles hardly use shared
resources, rabbits are fast and sensitive, devils slow all others (Whare-Map's four classes; the penalties are the
initial ones of Firmament's CoCo cost model).

    penalty of       beside a   sheep   rabbit   devil   turtle
    a sheep                        50      100     200       10
    a rabbit                       50      200    1000       10
    a devil                       200     1000     200       10
    a turtle                       50       50      50       50
"""

import numpy as np

from firmament_py.policy import F64, I64, View

KINDS = ("sheep", "rabbit", "devil", "turtle")
TRAIT = "interference-class"
_PENALTIES = ((50, 100, 200, 10), (50, 200, 1000, 10), (200, 1000, 200, 10), (50, 50, 50, 50))
_PENALTY_MAX = 10_000


def kind_number(name: str, option: str) -> int:
    """Position of `name` in KINDS. Raises ValueError, naming the option, if there is no such kind."""
    if name not in KINDS:
        raise ValueError(f"{option} is {name!r}; give one of {', '.join(KINDS)}")
    return KINDS.index(name)


def penalties(changes: str) -> F64:
    """(4, 4) the penalty of a task of one kind (row) beside a task of another kind (column).

    `changes` has the form "rabbit-devil=500,devil-devil=0". Raises ValueError for any other form.
    """
    table = np.array(_PENALTIES, np.float64)
    for change in (part.strip() for part in changes.split(",") if part.strip()):
        pair, equals, text = change.partition("=")
        one, dash, other = pair.strip().partition("-")
        text = text.strip()
        if not (equals and dash and text.isascii() and text.isdigit()):
            raise ValueError(f"penalties has {change!r}; give KIND-KIND=NUMBER, like rabbit-devil=500")
        if int(text) > _PENALTY_MAX:
            raise ValueError(f"penalties has {change!r}; give at most {_PENALTY_MAX}")
        table[kind_number(one, "penalties"), kind_number(other, "penalties")] = int(text)
    return table


def kinds_of_classes(view: View, default: int) -> I64:
    """(C,) the kind of each class; `default` for classes that state none."""
    return np.array([KINDS.index(k) if k in KINDS else default for k in view.trait(TRAIT)], np.int64)


def neighbours(view: View, default: int) -> I64:
    """(N, 4) number of tasks of each kind on each node."""
    values, census = view.census(TRAIT)
    counts = np.zeros((len(view.running), len(KINDS)), np.int64)
    for value, of_value in zip(values, census.T, strict=True):
        if value in KINDS:
            counts[:, KINDS.index(value)] = of_value
    counts[:, default] += np.maximum(view.running - counts.sum(axis=1), 0)
    return counts


def relative_size(view: View) -> F64:
    """(N,) mean cpu of all machines / cpu of each, from 1/4 to 4: neighbours matter more on small machines."""
    if "cpu" not in view.resources or not len(view.allocatable):
        return np.ones(len(view.allocatable))
    cpu = view.allocatable[:, view.resources.index("cpu")].astype(np.float64)
    mean = np.sort(cpu).mean()  # sorted: bitwise independent of the order of nodes
    ratio: F64 = np.clip(mean / np.maximum(cpu, 1.0), 0.25, 4.0)
    return ratio


def shares(view: View, resources: tuple[str, ...]) -> tuple[F64, F64]:
    """(N, R') each: the used share (View.load), 0 .. 1, of those of `resources` that exist, and the share that waiting
    tasks request on average."""
    columns = [view.resources.index(name) for name in resources if name in view.resources]
    offered = np.maximum(view.allocatable[:, columns], 1).astype(np.float64)
    used = np.clip(view.load[:, columns] / offered, 0.0, 1.0)
    mean = view.waiting @ view.requests[:, columns].astype(np.float64) / max(int(view.waiting.sum()), 1)
    return used, np.clip(mean / offered, 0.0, 1.0)
