"""Limits on the description of a class. A larger one is refused, so that one sender cannot slow down rounds for others.

Each entry of a description costs a round work on all nodes, even if its tasks cannot be placed. The limits are far
above what users and their tools write (a selector with many values is one requirement) and far below what fits into an
object of an API server: tens of thousands of terms.
"""

from collections.abc import Iterable

from firmament_py.model.constraints import PeerSelector, Term
from firmament_py.model.events import ClassDefined

MAX_TERMS = 256
"""Terms of affinity, anti-affinity and spread, required and preferred, together. A workload with anti-affinity to
many others lists them as values of one selector; one term for each service of a large application is some tens."""

MAX_REQUIREMENTS = 4096
"""Requirements on labels and fields in all selectors together: sixteen for each term, or the nodes of many volumes."""

MAX_TOLERATIONS = 512

MAX_RESOURCES = 512

MAX_TOKENS = 128
"""Host ports and disks. Each is a column in every table of amounts. A pod that needs a whole range of ports uses the
host's network and does not list them."""

MAX_IMAGES = 1024


def excess(new: ClassDefined) -> tuple[str, str] | None:
    """Field and reason of the first list in a definition that is too long; None if there is none."""
    of_field = terms(new)
    field = max(of_field, key=lambda name: of_field[name])
    for name, count, limit, what in (
        (field, sum(of_field.values()), MAX_TERMS, "terms of affinity, anti-affinity and spread"),
        ("requirements", _requirements(new), MAX_REQUIREMENTS, "label requirements in all selectors"),
        ("tolerations", len(new.demand.tolerations), MAX_TOLERATIONS, "tolerations"),
        ("requests", len(new.requests), MAX_RESOURCES, "requests of different resources"),
        ("tokens", len(new.tokens), MAX_TOKENS, "tokens (host ports, disks)"),
        ("images", len(new.preferences.images), MAX_IMAGES, "images"),
    ):
        if count > limit:
            return name, f"makes {count} {what}; give at most {limit}"
    return None


def terms(new: ClassDefined) -> dict[str, int]:
    """Inter-task terms by field."""
    return {
        "affinity": len(new.peers.affinity),
        "anti_affinity": len(new.peers.anti_affinity),
        "spread": len(new.peers.spread) + len(new.preferences.spread),
        "preferred_peers": len(new.preferences.peers),
    }


def _requirements(new: ClassDefined) -> int:
    demand, peers, wishes = new.demand, new.peers, new.preferences
    groups = (*demand.affinity, *(terms for _, terms in demand.further))
    selectors = (
        *(term.selector for term in (*peers.affinity, *peers.anti_affinity)),
        *(term.selector for _, term in wishes.peers),
        *(spread.selector for spread in (*peers.spread, *wishes.spread)),
    )
    of_terms = sum(_in_terms(terms) for terms in groups) + _in_terms(term for _, term in wishes.nodes)
    return len(demand.selector) + of_terms + sum(_in_selector(selector) for selector in selectors)


def _in_terms(terms: Iterable[Term]) -> int:
    return sum(max(len(term.labels) + len(term.fields), 1) for term in terms)


def _in_selector(selector: PeerSelector) -> int:
    return len(selector.labels or ()) + len(selector.namespace_selector or ())
