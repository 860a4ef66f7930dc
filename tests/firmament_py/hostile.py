"""Descriptions of hostile tasks, as long as possible."""

from collections.abc import Callable, Mapping
from typing import Any

from firmament_py.model.constraints import NodeDemand, PeerDemand, PeerTerm, PreferenceSet, Spread, Term, Toleration
from tests.builders import needs, tasks_like


def of_others(count: int, key: str = "") -> tuple[PeerTerm, ...]:
    """Terms that speak of as many different tasks, none of which exist; each with a key of its own unless one is
    given."""
    return tuple(PeerTerm(tasks_like(needs("app", "In", f"a{i}")), key or f"key{i}") for i in range(count))


def of_itself(count: int, key: str = "") -> tuple[PeerTerm, ...]:
    """The same with selectors that a task with `many_labels` meets."""
    return tuple(PeerTerm(tasks_like(needs(f"label{i}", "In", "x")), key or f"key{i}") for i in range(count))


def many_labels(count: int) -> dict[str, str]:
    return {f"label{i}": "x" for i in range(count)}


def spread_over(terms: tuple[PeerTerm, ...]) -> tuple[Spread, ...]:
    return tuple(Spread(term.selector, term.topology_key, 1 + i % 3) for i, term in enumerate(terms))


def _weighted(terms: tuple[PeerTerm, ...]) -> tuple[tuple[int, PeerTerm], ...]:
    return tuple((1 + i % 100, term) for i, term in enumerate(terms))


TERMS: Mapping[str, Callable[[int], Mapping[str, Any]]] = {
    "affinity": lambda n: {"peers": PeerDemand(affinity=of_others(n))},
    "affinity-to-itself": lambda n: {"peers": PeerDemand(affinity=of_itself(n))},
    "affinity-of-one-key": lambda n: {"peers": PeerDemand(affinity=of_itself(n, "host"))},
    "anti-affinity": lambda n: {"peers": PeerDemand(anti_affinity=of_others(n))},
    "anti-affinity-to-itself": lambda n: {"peers": PeerDemand(anti_affinity=of_itself(n))},
    "anti-affinity-of-one-key": lambda n: {"peers": PeerDemand(anti_affinity=of_itself(n, "host"))},
    "spread": lambda n: {"peers": PeerDemand(spread=spread_over(of_others(n)))},
    "spread-of-itself": lambda n: {"peers": PeerDemand(spread=spread_over(of_itself(n)))},
    "spread-of-one-key": lambda n: {"peers": PeerDemand(spread=spread_over(of_itself(n, "zone")))},
    "preferred-affinity": lambda n: {"preferences": PreferenceSet(peers=_weighted(of_itself(n)))},
    "preferred-spread": lambda n: {"preferences": PreferenceSet(spread=spread_over(of_itself(n, "host")))},
}
"""By name: what a class says that has so many terms about other tasks. Arguments of make_class."""

OTHERS: Mapping[str, Callable[[int], Mapping[str, Any]]] = {
    "selector": lambda n: {"demand": NodeDemand(selector=tuple(needs(f"key{i}") for i in range(n)))},
    "node-affinity": lambda n: {"demand": NodeDemand(affinity=(tuple(Term((needs(f"k{i}"),)) for i in range(n)),))},
    "further": lambda n: {"demand": NodeDemand(further=tuple((f"f{i}", (Term((needs("k"),)),)) for i in range(n)))},
    "tolerations": lambda n: {"demand": NodeDemand(tolerations=tuple(Toleration(f"k{i}", "Exists") for i in range(n)))},
    "preferred-nodes": lambda n: {
        "preferences": PreferenceSet(nodes=tuple((1, Term((needs(f"k{i}"),))) for i in range(n)))
    },
    "images": lambda n: {"preferences": PreferenceSet(images=tuple(f"image-{i}:1" for i in range(n)))},
    "ports": lambda n: {"tokens": tuple(f"TCP:{i}" for i in range(n))},
    "resources": lambda n: {f"example.com/r{i}": 1 for i in range(n)},
}
"""The same of everything else that can be said many times."""
