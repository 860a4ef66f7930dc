"""What queues used in the past: the rules by which it counts, and what an engine that has lost it is told."""

from dataclasses import dataclass, replace

from poseidon_py.describe.queues.model import Tree, id_of
from poseidon_py.kube.quantity import CPU
from protos.gen import flow_pb2

CAPACITY = ""
"""In place of the key of a queue: what nodes offer."""
_DIGITS = 6
"""Of amounts that are stored."""

Stored = dict[str, list[tuple[str, str, float]]]
"""Key of a queue or local queue -> flavor, resource, amount in the engine's units."""


@dataclass(slots=True)
class PastUse:
    """`half_life_seconds`, `weight`: in place of what objects of the cluster say; None: as these say."""

    half_life_seconds: float | None = None
    weight: float | None = None
    last: flow_pb2.PastUse | None = None
    """As the engine reported it last, or as it was stored; None: unknown."""

    def ruled(self, tree: Tree) -> Tree:
        """The tree with the rules that are in force."""
        past = tree.rules.past_use
        if self.half_life_seconds is not None:
            past = replace(past, half_life_seconds=self.half_life_seconds)
        if self.weight is not None:
            past = replace(past, weight=self.weight)
        return replace(tree, rules=replace(tree.rules, past_use=past))

    def counts(self, tree: Tree) -> bool:
        """Whether past use has an effect."""
        return tree.rules.past_use.half_life_seconds > 0.0

    def attached(self, message: flow_pb2.Queues) -> flow_pb2.Queues:
        """The message with what was reported last, for an engine that may know nothing."""
        if self.last is None or not message.half_life_seconds:
            return message
        found = flow_pb2.Queues()
        found.CopyFrom(message)
        found.past_use.CopyFrom(self.last)
        return found

    def stored(self, tree: Tree) -> Stored:
        """What was reported last, of the queues of the tree."""
        if self.last is None:
            return {}
        keys = {0: CAPACITY} | {each.id: each.key for each in tree.queues}
        keys |= {each.id: each.key for each in tree.local_queues}
        return {
            keys[of.id]: [(each.flavor, each.resource, _rounded(each.amount)) for each in of.amounts]
            for of in self.last.of
            if of.id in keys
        }

    def restore(self, at_us: int, stored: Stored) -> None:
        """Takes over what was stored, unless an engine has reported since."""
        if self.last is not None:
            return
        self.last = flow_pb2.PastUse(at_us=at_us)
        for key, amounts in stored.items():
            of = self.last.of.add(id=id_of(key) if key != CAPACITY else 0)
            for flavor, resource, amount in amounts:
                of.amounts.add(flavor=flavor, resource=resource, amount=amount)


def _rounded(amount: float) -> float:
    return float(f"{amount:.{_DIGITS}g}")


def unit_weights(weights: dict[str, float]) -> tuple[tuple[str, float], ...]:
    """Weights of the units that users know, as those of the engine's units: a core is 1000 of these."""
    by_unit = {CPU: 1.0} | weights
    return tuple(sorted((name, weight / 1000 if name == CPU else weight) for name, weight in by_unit.items()))
