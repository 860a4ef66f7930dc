"""A second opinion on scheduling in plain Python: dicts, integers and one node at a time.

Shares nothing with the engine but the event types. Slow and literal on purpose: read it next to the documentation
of Kubernetes' node selectors, taints and resource requests.
"""

from collections import Counter
from dataclasses import dataclass, field

from firmament_py.model.events import ClassDefined, NodeObserved

CEILING = 2**50
"""A request counts for at most this much, and no node offers this much (model/resources.py says so)."""


def requests(cls: ClassDefined) -> Counter[str]:
    """What a task of a class takes of a node."""
    return Counter({**{r: min(amount, CEILING) for r, amount in cls.requests.items()}, "pods": 1})


def offers(node: NodeObserved) -> Counter[str]:
    return Counter({r: min(amount, CEILING - 1) for r, amount in node.allocatable.items()})


def tolerated(taint, toleration) -> bool:
    """Key empty: every key (only with Exists). Effect empty: every effect. Operator empty: Equal."""
    effect = toleration.effect in ("", taint.effect)
    if toleration.operator == "Exists":
        return effect and toleration.key in ("", taint.key)
    if toleration.operator in ("", "Equal"):
        return effect and toleration.key == taint.key != "" and toleration.value == taint.value
    return False


def _number(text: str) -> int | None:
    try:
        value = int(text)
    except ValueError:
        return None
    # int() takes more spellings than a 64-bit parser: blanks, underscores, other scripts' digits
    plain = text.lstrip("+-")
    if not plain or not all(c in "0123456789" for c in plain) or len(text) - len(plain) > 1:
        return None
    return value if -(2**63) <= value <= 2**63 - 1 else None


def meets(requirement, labels) -> bool:
    have = labels.get(requirement.key)
    expected = requirement.values
    if requirement.operator == "In":
        return have is not None and have in expected
    if requirement.operator == "NotIn":
        return have is None or have not in expected
    if requirement.operator == "Exists":
        return have is not None
    if requirement.operator == "DoesNotExist":
        return have is None
    if have is None:
        return False
    number, bound = _number(have), _number(expected[0]) if len(expected) == 1 else None
    if number is None or bound is None:
        return False
    return number > bound if requirement.operator == "Gt" else number < bound


def selected(demand, node: NodeObserved) -> bool:
    if not all(meets(r, node.labels) for r in demand.selector):
        return False
    return all(any_term(terms, node) for terms in demand.affinity)


def any_term(terms, node: NodeObserved) -> bool:
    fields = {"metadata.name": node.name}
    return any(
        (term.labels or term.fields)
        and all(meets(r, node.labels) for r in term.labels)
        and all(meets(r, fields) for r in term.fields)
        for term in terms
    )


def repelled(demand, node: NodeObserved) -> bool:
    return any(
        taint.effect in ("NoSchedule", "NoExecute") and not any(tolerated(taint, t) for t in demand.tolerations)
        for taint in node.taints
    )


@dataclass
class PlainTask:
    cls: int
    node: str | None = None
    state: str = "waiting"
    created_us: int = 0
    not_before_us: int = 0


@dataclass
class World:
    """The cluster as dicts, by id."""

    nodes: dict[str, NodeObserved] = field(default_factory=dict)
    classes: dict[int, ClassDefined] = field(default_factory=dict)
    tasks: dict[int, PlainTask] = field(default_factory=dict)

    def used(self, node_id: str) -> Counter[str]:
        total: Counter[str] = Counter()
        for task in self.tasks.values():
            if task.node == node_id:
                total.update(requests(self.classes[task.cls]))
        return total

    def overcommitted(self) -> dict[str, Counter[str]]:
        """Nodes that hold more of a resource than they offer."""
        over = {i: self.used(i) - offers(node) for i, node in self.nodes.items()}
        return {i: excess for i, excess in over.items() if excess}

    def welcome(self, cls: int, node_id: str) -> bool:
        """Do selector, affinity and taints allow class `cls` on a node?"""
        demand, node = self.classes[cls].demand, self.nodes[node_id]
        return selected(demand, node) and not repelled(demand, node)

    def fits(self, cls: int, node_id: str, without: Counter[str] | None = None) -> bool:
        """Whether one more task of class `cls` fits after the release of `without`.

        A resource that is not requested does not matter, even if others over-commit it.
        """
        used, offered = self.used(node_id) - (without or Counter()), offers(self.nodes[node_id])
        wants = requests(self.classes[cls])
        return all(used[r] + amount <= offered[r] for r, amount in wants.items() if amount)

    def takes(self, cls: int, node_id: str, without: Counter[str] | None = None) -> bool:
        return self.welcome(cls, node_id) and self.fits(cls, node_id, without)
