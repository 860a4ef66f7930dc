"""Pods that their own affinity pins to one node by its name, as the DaemonSet controller does.

The name is no part of the class, so that all pods of a DaemonSet have one.
"""

from poseidon_py.kube.object_details import Affinity
from poseidon_py.kube.objects import NOTHING, Pod, Requirement, SelectorTerm, decode

_FIELDS = b'"matchFields"'
_NAME = "metadata.name"


def pinned_to(pod: Pod) -> str:
    """The name of the node, if the only required term of a pod's node affinity names one; empty otherwise, and for a
    pod with topology spread constraints, which count domains of the nodes that its affinity leaves. Raises
    InvalidField."""
    raw = bytes(pod.spec.affinity)
    if raw.count(_FIELDS) != 1 or pod.spec.spread is not NOTHING:
        return ""
    affinity = decode(pod.spec.affinity, Affinity, "spec.affinity")
    if affinity is None or affinity.node is None or affinity.node.required is None:
        return ""
    terms = affinity.node.required.terms or ()
    return _name_of(terms[0].fields or ()) if len(terms) == 1 else ""


def _name_of(fields: tuple[()] | list[Requirement]) -> str:
    if len(fields) != 1 or fields[0].key != _NAME or fields[0].operator != "In":
        return ""
    values = fields[0].values or []
    return values[0] if len(values) == 1 else ""


def without_name(raw: bytes, name: str) -> bytes:
    """The bytes of an affinity that pins to `name`, equal for all that differ in it alone."""
    before, field, after = raw.partition(_FIELDS)
    return before + field + after.replace(b'"%s"' % name.encode(), b'""', 1)


def unpinned(term: SelectorTerm) -> SelectorTerm:
    """A required term without the name."""
    return SelectorTerm(labels=term.labels)
