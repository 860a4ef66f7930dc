"""Demands of tasks on nodes, as values: selector requirements, terms, tolerations, taints.

Semantics are those of Kubernetes' node selectors and taints; the names are generic. The evaluators here work on one
node at a time and follow the documentation closely: the independent check uses them. The network builder has its own
vectorised evaluation in state/label_index.py, and tests compare the two.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from firmament_py.model.immutable import Immutable


class Operator(StrEnum):
    IN = "In"
    NOT_IN = "NotIn"
    EXISTS = "Exists"
    DOES_NOT_EXIST = "DoesNotExist"
    GT = "Gt"
    LT = "Lt"


@dataclass(frozen=True, slots=True)
class Requirement:
    """One demand on a label. For GT and LT `values` holds one integer as text."""

    key: str
    operator: Operator
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        present = self.key in labels
        match self.operator:
            case Operator.IN:
                return present and labels[self.key] in self.values
            case Operator.NOT_IN:
                return not present or labels[self.key] not in self.values
            case Operator.EXISTS:
                return present
            case Operator.DOES_NOT_EXIST:
                return not present
            case _:
                value = integer(labels[self.key]) if present else None
                bound = integer(self.values[0]) if len(self.values) == 1 else None
                if value is None or bound is None:
                    return False
                return value > bound if self.operator is Operator.GT else value < bound


@dataclass(frozen=True, slots=True)
class Term:
    """Demands that must all hold, on labels and on fields (a node's name); an empty term matches nothing."""

    labels: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        if not self.labels and not self.fields:
            return False
        return all(r.matches(labels) for r in self.labels) and all(r.matches(fields) for r in self.fields)


@dataclass(frozen=True, slots=True)
class Taint(Immutable):
    key: str
    value: str
    effect: str

    @property
    def repels(self) -> bool:
        """Whether the taint excludes tasks that do not tolerate it; PreferNoSchedule does not."""
        return self.effect in ("NoSchedule", "NoExecute")


@dataclass(frozen=True, slots=True)
class Toleration:
    """An empty key with Exists tolerates every taint; an empty effect means every effect.

    An empty operator is Equal. Gt and Lt tolerate a taint whose value is a larger or smaller integer than theirs. An
    unknown operator tolerates nothing.
    """

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: Taint) -> bool:
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        if self.operator in (Operator.GT, Operator.LT):
            value, bound = decimal(taint.value), decimal(self.value)
            if value is None or bound is None:
                return False
            return value > bound if self.operator == Operator.GT else value < bound
        return self.operator in ("", "Equal") and bool(self.key) and self.value == taint.value


@dataclass(frozen=True, slots=True)
class NodeDemand(Immutable):
    """The demands of a task class on a node's labels, name and taints, as opposed to its free resources.

    selector: requirements that must all hold. affinity: groups of terms; one term of each group must match.
    further: groups likewise, each with the name that reasons for waiting use.
    """

    selector: tuple[Requirement, ...] = ()
    affinity: tuple[tuple[Term, ...], ...] = ()
    tolerations: tuple[Toleration, ...] = ()
    further: tuple[tuple[str, tuple[Term, ...]], ...] = ()

    @property
    def picky(self) -> bool:
        """Whether labels or names of nodes matter to it."""
        return bool(self.selector or self.affinity or self.further)

    def on_node(self, name: str) -> "NodeDemand":
        """The same, on the node of that name alone."""
        only = Term(fields=(Requirement(NAME_FIELD, Operator.IN, (name,)),))
        return replace(self, affinity=(*self.affinity, (only,)))

    def is_tolerated(self, taint: Taint) -> bool:
        return any(t.tolerates(taint) for t in self.tolerations)

    def untolerated(self, taints: tuple[Taint, ...]) -> Taint | None:
        """The first taint that excludes the task, if any."""
        for taint in taints:
            if taint.repels and not self.is_tolerated(taint):
                return taint
        return None

    def selects(self, labels: Mapping[str, str], fields: Mapping[str, str]) -> bool:
        if not all(r.matches(labels) for r in self.selector):
            return False
        groups = (*self.affinity, *(terms for _, terms in self.further))
        return all(any(t.matches(labels, fields) for t in terms) for terms in groups)


NO_DEMAND = NodeDemand()
"""Matches any node without taints."""

NAME_FIELD = "metadata.name"
"""The field that holds a node's name; there are no other fields."""


@dataclass(frozen=True, slots=True)
class PeerSelector(Immutable):
    """The tasks that a term refers to: by namespace, and by labels that must meet all requirements.

    namespaces: these, and those whose own labels meet namespace_selector (None: no others; empty: all).
    labels None: no task (an absent label selector).
    """

    namespaces: frozenset[str] = frozenset()
    namespace_selector: tuple[Requirement, ...] | None = None
    labels: tuple[Requirement, ...] | None = ()

    def matches(self, namespace: str, namespace_labels: Mapping[str, str], labels: Mapping[str, str]) -> bool:
        if self.labels is None or not all(r.matches(labels) for r in self.labels):
            return False
        if namespace in self.namespaces:
            return True
        return self.namespace_selector is not None and all(r.matches(namespace_labels) for r in self.namespace_selector)


@dataclass(frozen=True, slots=True)
class PeerTerm:
    """The tasks that `selector` matches, on nodes with the same value of label `topology_key`."""

    selector: PeerSelector
    topology_key: str


@dataclass(frozen=True, slots=True)
class Spread:
    """The number of matching tasks in any domain of `topology_key` exceeds that in the emptiest by at most max_skew.

    With fewer than min_domains domains the emptiest counts as 0. Domains are those of nodes that have the keys of
    all the task's spreads and, if honor_affinity, meet its selector and affinity (further affinity is ignored) and, if
    honor_taints, have only taints that it tolerates. Semantics: Kubernetes' topologySpreadConstraints.
    """

    selector: PeerSelector
    topology_key: str
    max_skew: int = 1
    min_domains: int = 1
    honor_affinity: bool = True
    honor_taints: bool = False


@dataclass(frozen=True, slots=True)
class PeerDemand:
    """The demands of a task class on the nodes of other tasks."""

    affinity: tuple[PeerTerm, ...] = ()
    anti_affinity: tuple[PeerTerm, ...] = ()
    spread: tuple[Spread, ...] = ()


NO_PEERS = PeerDemand()


@dataclass(frozen=True, slots=True)
class PreferenceSet:
    """The preferences of a task class, which count as costs.

    nodes: weight 1 .. 100 and a term that a node should match. peers: weight -100 .. 100, below 0 for tasks that
    should not be near. images: names of images that a node should hold already. avoided_as: the owner of the tasks, for
    nodes that ask to avoid tasks of certain owners. capacity: of nodes that cost the same, those with room for most of
    its tasks, since the first decides for others.
    """

    nodes: tuple[tuple[int, Term], ...] = ()
    peers: tuple[tuple[int, PeerTerm], ...] = ()
    spread: tuple[Spread, ...] = ()
    images: tuple[str, ...] = ()
    avoided_as: str = ""
    capacity: bool = False


NO_PREFERENCES = PreferenceSet()


def decimal(text: str) -> int | None:
    """The value of a 64-bit integer in its shortest form, as tolerations compare it; None for other text."""
    value = integer(text)
    return value if value is not None and str(value) == text else None


def integer(text: str) -> int | None:
    """The value of a decimal 64-bit integer, as Gt and Lt compare it; None for other text."""
    digits = text[1:] if text[:1] in "+-" else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > 19:  # longer than 64 bits; Python refuses to convert thousands of digits
        return None
    value = -int(digits) if text[0] == "-" else int(digits)
    return value if -(2**63) <= value < 2**63 else None
