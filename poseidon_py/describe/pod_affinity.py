"""Pod affinity, anti-affinity and topology spread as messages of the contract. Pure.

A term without namespaces and namespace selector applies to the pod's own namespace. Hence the classes of such pods
differ between namespaces.

The API server merges matchLabelKeys and mismatchLabelKeys of terms into their selectors when it creates a pod, and
labels that change later do not matter to them. Those of spread constraints it merges, too, but kube-scheduler merges
them again with the labels that the pod has now (podtopologyspread/common.go): their classes differ between labels.

Default topology spread is that of kube-scheduler's system defaults: pods of Services and controllers without
constraints of their own prefer to be even over nodes and zones. What they count is selected by the Services that match
the pod and by its ReplicationController, ReplicaSet or StatefulSet together.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

from msgspec import Raw

from poseidon_py.describe.selectors import RequirementMessage, label_requirements, with_label_keys
from poseidon_py.kube.object_details import LabelSelector, PodAffinity, PodTerm, SpreadConstraint
from poseidon_py.kube.objects import InvalidField, Labels, decode
from protos.gen import flow_pb2

REPLICATION_CONTROLLER = "ReplicationController"

SYSTEM_CONSTRAINTS = (("kubernetes.io/hostname", 3), ("topology.kubernetes.io/zone", 5))
"""Topology key and maxSkew of each default constraint."""

_MAX_REQUIREMENTS = 64
"""A merged selector with more requirements is ignored, so that the limits of a class are not exceeded because of it."""


def add_pod_affinity(
    message: flow_pb2.TaskClass,
    near: PodAffinity | None,
    far: PodAffinity | None,
    namespace: str,
) -> None:
    """Adds affinity and anti-affinity, required and preferred. Raises InvalidField."""
    for sign, given, required, name in (
        (1, near, message.affinity, "podAffinity"),
        (-1, far, message.anti_affinity, "podAntiAffinity"),
    ):
        if given is None:
            continue
        for at, term in enumerate(given.required or ()):
            required.append(_term(term, namespace, f"spec.affinity.{name}.required[{at}]"))
        for at, weighted in enumerate(given.preferred or ()):
            path = f"spec.affinity.{name}.preferred[{at}]"
            if not 0 <= weighted.weight <= 100:
                raise InvalidField(f"{path}.weight", f"{weighted.weight} is not valid; give 1 to 100")
            peer_term = _term(weighted.term, namespace, f"{path}.podAffinityTerm")
            message.preferred_peers.add(term=peer_term, weight=sign * weighted.weight)


def _term(term: PodTerm, namespace: str, path: str) -> flow_pb2.PeerTerm:
    if not term.topology_key:
        raise InvalidField(f"{path}.topologyKey", "is empty; give a node label")
    selector = flow_pb2.PeerSelector(namespaces=sorted(set(term.namespaces or ())))
    if term.namespace_selector is not None:
        requirements = label_requirements(term.namespace_selector, f"{path}.namespaceSelector")
        selector.namespace_selector.extend(requirements)
        selector.every_namespace = not requirements
    elif not term.namespaces:
        selector.namespaces.append(namespace)
    _select_labels(selector, term.selector, path)
    return flow_pb2.PeerTerm(selector=selector, topology_key=term.topology_key)


def add_spread(
    message: flow_pb2.TaskClass, constraints: Sequence[SpreadConstraint], namespace: str, labels: Mapping[str, str]
) -> None:
    """Adds topology spread constraints, required and preferred. Raises InvalidField."""
    for at, given in enumerate(constraints):
        path = f"spec.topologySpreadConstraints[{at}]"
        if not given.topology_key:
            raise InvalidField(f"{path}.topologyKey", "is empty; give a node label")
        if given.max_skew < 1:
            raise InvalidField(f"{path}.maxSkew", f"{given.max_skew} is not valid; give 1 or more")
        if given.when not in ("DoNotSchedule", "ScheduleAnyway"):
            raise InvalidField(
                f"{path}.whenUnsatisfiable", f"{given.when!r} is not valid; give DoNotSchedule or ScheduleAnyway"
            )
        for field, policy in (("nodeAffinityPolicy", given.affinity_policy), ("nodeTaintsPolicy", given.taints_policy)):
            if policy not in (None, "Honor", "Ignore"):
                raise InvalidField(f"{path}.{field}", f"{policy!r} is not valid; give Honor or Ignore")
        selector = flow_pb2.PeerSelector(namespaces=[namespace])
        _select_labels(selector, given.selector, path)
        if not selector.no_task:
            narrowed = with_label_keys(list(selector.labels), labels, given.match_keys or ())
            del selector.labels[:]
            selector.labels.extend(narrowed)
            # for kube-scheduler an empty selector of a spread constraint matches no pod, like an absent one
            selector.no_task = not narrowed
        message.spread.add(
            selector=selector,
            topology_key=given.topology_key,
            max_skew=given.max_skew,
            min_domains=given.min_domains or 0,
            ignore_affinity=given.affinity_policy == "Ignore",
            honor_taints=given.taints_policy == "Honor",
            preferred=given.when == "ScheduleAnyway",
        )


def default_selector(
    namespace: str, services: Iterable[Mapping[str, str]], kind: str = "", of_controller: bytes = b""
) -> bytes:
    """The encoded PeerSelector of what a pod of `namespace` is spread from; empty: nothing.

    `services`: the selectors of the Services that match the pod. `kind`, `of_controller`: the kind of its controller
    and that object's spec.selector in JSON; empty: none. A ReplicationController overrides labels of Services;
    requirements of other controllers are added. An invalid selector of a controller is ignored, as by kube-scheduler.
    """
    labels: dict[str, str] = {}
    for selector in services:
        labels |= selector
    added: list[RequirementMessage] = []
    path, raw = "spec.selector", Raw(of_controller)
    with suppress(InvalidField):
        if kind == REPLICATION_CONTROLLER:
            labels |= decode(raw, Labels, path) or {}
        else:
            added = label_requirements(decode(raw, LabelSelector, path) or LabelSelector(), path)
    exact = [RequirementMessage(key=key, operator="In", values=[value]) for key, value in labels.items()]
    # sorted and without repetitions, so that equal selectors make equal classes
    distinct = {each.SerializeToString(deterministic=True): each for each in (*exact, *added)}
    if not 0 < len(distinct) <= _MAX_REQUIREMENTS:
        return b""
    message = flow_pb2.PeerSelector(namespaces=[namespace], labels=[distinct[key] for key in sorted(distinct)])
    return message.SerializeToString(deterministic=True)


def add_default_spread(message: flow_pb2.TaskClass, selector: bytes) -> None:
    """Adds the default constraints. `selector`: from default_selector, not empty."""
    for key, max_skew in SYSTEM_CONSTRAINTS:
        message.spread.add(
            selector=flow_pb2.PeerSelector.FromString(selector), topology_key=key, max_skew=max_skew, preferred=True
        )


def _select_labels(message: flow_pb2.PeerSelector, selector: LabelSelector | None, path: str) -> None:
    if selector is None:
        message.no_task = True
    else:
        message.labels.extend(label_requirements(selector, f"{path}.labelSelector"))
