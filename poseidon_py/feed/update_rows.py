"""Converts the store's records to the rows of an Update, for feed/workers.py and feed/resync.py."""

import logging
import sys

from poseidon_py.conventions.fields import NO_REMARKS
from poseidon_py.describe import lifetime
from poseidon_py.describe.annotations import checkpoint, movable, preemption_terms, traits, usage_thresholds
from poseidon_py.describe.lifetime import daemon, lasting, started_us, unevictable
from poseidon_py.describe.node import describe_node, node_key
from poseidon_py.describe.node_pool import demand
from poseidon_py.describe.pinning import pinned_to
from poseidon_py.describe.reason_keys import ATTACHABLE, NODE_POOL
from poseidon_py.describe.remarks import pod_remarks
from poseidon_py.describe.task_classes import Extras
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.state.node_record import NodeRecord
from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord, SentState
from poseidon_py.state.store import Store
from poseidon_py.state.volumes.claims import claims_of
from protos.gen import flow_pb2

log = logging.getLogger(__name__)

UNLIMITED = 2**40
"""Number of volumes of a node that declares no limit."""


def describe_pod(store: Store, known: PodRecord) -> None:
    """Updates a pod's description from its newest object, its volumes, nodes to avoid and default topology spread."""
    pod = known.observed.newest
    if pod is not None:
        known.observed.newest = None
        _describe_template(store, known, pod)
    _note_start(store, known, pod)
    known.described.class_terms = store.priority_classes.terms_of(known.described.priority_class)
    store.queues.describe(known, pod)
    store.gangs.describe(known, pod)
    _set_priority(store, known)
    spread_from = store.spreading.selector_of(known, pod)
    if known.assumed and known.described.class_id:
        return  # the placement was computed for this class
    if not known.described.template:
        known.described.class_id, known.volumes.blocked = 0, ""
    elif known.has_claims or known.owner in store.avoided or _is_ruled(known) or _pin_of_class(known):
        _extend(store, known, spread_from)
    else:
        template, known.volumes.blocked, known.volumes.tokens = known.described.template, "", ()
        known.described.class_id = store.classes.spread(template, spread_from) if spread_from else template


def quarantine(store: Store, known: PodRecord, error: Exception) -> None:
    """Excludes a pod from all calls and reports it, if a defect prevents its description. Called in an `except`."""
    log.exception("cannot describe %s", known.full_name)
    known.described.problem = _internal(error)
    store.problems.of_pod(known.namespace, known.name, known.uid, known.described.problem)


def quarantine_node(store: Store, known: NodeRecord, error: Exception) -> None:
    """The same for a node, whose sent state is kept."""
    log.exception("cannot describe node %s", known.name)
    store.problems.of_node(known.uid, known.name, _internal(error))


def _internal(error: Exception) -> str:
    return f"internal error, see the scheduler's log: {type(error).__name__}: {error}"


def _describe_template(store: Store, known: PodRecord, pod: Pod) -> None:
    """Updates what follows from the pod's object. An invalid pod is reported; it has no class, or, if bound, that of a
    pod slot."""
    known.described.profile = store.profiles.of(pod)
    known.described.daemon, known.described.unevictable = daemon(pod), unevictable(pod)
    known.described.checkpoint_us = checkpoint.checkpoint_us(pod)
    known.described.preemption = preemption_terms.preemption_terms(pod)
    known.described.priority_class = sys.intern(pod.spec.priority_class or "")
    known.described.scheduled_us = lifetime.scheduled_us(pod)
    known.described.pin = _pin_of(pod)
    moves = not known.described.pin and movable.movable(pod, assigned_to_us=known.observed.assigned_to_us)
    known.described.movable = moves
    claims = claims_of(pod)
    if claims != known.volumes.claims:
        store.volumes.use(known, claims)
    known.described.inputs, data_problem = _inputs_of(store, known, pod)
    problems = (each.problem_of(pod) for each in (lifetime, checkpoint, movable, preemption_terms, traits))
    store.problems.set_ignored(known, "; ".join(filter(None, (*problems, data_problem))))
    known.described.lasting = lasting(pod, assigned_to_us=known.observed.assigned_to_us)
    remarks = pod_remarks(pod) if known.observed.assigned_to_us else NO_REMARKS
    store.problems.set_reported(known, remarks.reported)
    try:
        if remarks.refused and not known.node:
            raise InvalidField(*remarks.refused[0].split(": ", 1))
        store.devices.use(known, pod)
        known.described.template = store.classes.of(pod, known.described.pin)
        known.described.problem = ""
        store.problems.pod_valid(known.uid)
    except InvalidField as problem:
        known.described.problem = str(problem)
        known.described.template = store.classes.unreadable(pod) if known.node else 0
        store.problems.of_pod(known.namespace, known.name, known.uid, known.described.problem)


def _note_start(store: Store, known: PodRecord, pod: Pod | None) -> None:
    """Updates `DescribedPod.started_us`. `pod`: the newest object; None: it was described before."""
    described = known.described
    reported = started_us(pod) if pod is not None else described.started_us
    task_class = store.classes.get(described.template)
    if not (known.node or known.assumed):
        described.started_us = 0
    elif task_class is not None and task_class.expected_seconds:
        described.started_us = reported
    elif not described.started_us:
        described.started_us = reported or store.now_us()


def _set_priority(store: Store, known: PodRecord) -> None:
    """Updates the priority and preemption policy: those of its queue and its pod group take precedence over its own."""
    task_class = store.classes.get(known.described.template)
    if task_class is not None:
        priority, never_preempts = known.given_priority
        known.described.priority = task_class.priority if priority is None else priority
        known.described.never_preempts = task_class.never_preempts or never_preempts


def _is_ruled(known: PodRecord) -> bool:
    """Whether its queue or pod group overrides something of a pod, or confines it."""
    return known.given_priority != (None, False) or bool(known.node_pools)


def _pin_of(pod: Pod) -> str:
    """See pinned_to; empty for an invalid affinity, too, which is reported with the class."""
    try:
        return pinned_to(pod)
    except InvalidField:
        return ""


def _pin_of_class(known: PodRecord) -> str:
    """The name of the only node for a pod, if it has to be part of the class: quotas are for kinds of nodes, which
    classes select."""
    return known.described.pin if known.queue.id or known.queue.running_id else ""


def _inputs_of(store: Store, known: PodRecord, pod: Pod) -> tuple[int, str]:
    """Id of the input set of a pod that is pending or may be moved, and the problem of an invalid annotation, which
    counts as none."""
    if known.node and known.described.movable is False:
        return 0, ""
    try:
        return store.inputs.of(pod), ""
    except InvalidField as problem:
        return 0, str(problem)


def _extend(store: Store, known: PodRecord, spread_from: bytes) -> None:
    further: tuple[tuple[str, bytes], ...] = ()
    requests: tuple[tuple[str, int], ...] = ()
    decides = False
    before, known.volumes.blocked = known.volumes.blocked, ""
    known.volumes.tokens = ()
    if known.volumes.claims and (known.node or known.schedulable):
        known.volumes.blocked = before
        verdict = store.volumes.demands_of(known)
        further, requests = tuple(verdict.further), tuple(sorted(verdict.requests.items()))
        known.volumes.tokens, decides = verdict.tokens, bool(verdict.waits_in)
        known.volumes.blocked, known.volumes.blocked_anywhere = verdict.blocked, not verdict.per_node
        if verdict.blocked not in ("", before) and store.volumes.is_reportable(verdict):
            store.problems.blocked(known)
    if known.devices.any and (known.node or known.schedulable):
        blocked, devices = known.devices.blocked, store.devices.demands_of(known)
        further += tuple(devices.further)
        requests += tuple(sorted(devices.requests.items()))
        known.devices.blocked = devices.blocked
        if devices.blocked not in ("", blocked) and devices.is_reportable:
            store.problems.blocked(known)
    further += tuple((NODE_POOL, demand(each).SerializeToString()) for each in sorted(known.node_pools))
    waits = not known.node
    known.described.class_id = store.classes.extended(
        known.described.template,
        Extras(
            further,
            requests,
            known.volumes.tokens,
            known.owner if waits and known.owner in store.avoided else "",
            *known.given_priority,
            _pin_of_class(known),
            spread_from,
            decides,
        ),
    )


def node_message(store: Store, known: NodeRecord) -> flow_pb2.Node | None:
    """The node's message; None, and the sent state is kept, if no valid version of it was observed."""
    node = known.newest
    limits = tuple(sorted(store.volumes.limits(known.name).items())) if store.storage.limited else ()
    if node is not None:
        known.newest = None
        key = node_key(node, store.classes.bandwidth)
        if known.key is None or key != known.key[0]:
            try:
                known.base = describe_node(node, known.id, store.classes.bandwidth)
                known.thresholds = usage_thresholds.thresholds_of(node)
            except InvalidField as problem:
                store.problems.of_node(known.uid, known.name, str(problem))
                return known.message
            known.key = (key, None)
            store.note_avoided(known.name, known.base.avoids)
            if not known.base.allocatable:
                store.metrics.no_allocatable.inc()
                store.problems.of_node(
                    known.uid, known.name, "status.allocatable: is missing; no pod fits until it is set"
                )
    busy = known.thresholds.exceeded(known.used)
    devices = store.devices.offers.of(known.name, known.base.labels, known.base.allocatable) if known.base else ()
    extras = (limits, tuple(sorted(store.storage.limited)), busy, devices)
    if known.base is not None and known.key is not None and known.key[1] != extras:
        known.key = (known.key[0], extras)
        known.message = flow_pb2.Node()
        known.message.CopyFrom(known.base)
        for driver in store.storage.limited:
            known.message.allocatable[ATTACHABLE + driver] = UNLIMITED
        for driver, count in limits:
            known.message.allocatable[ATTACHABLE + driver] = max(count, 0)
        known.message.allocatable.update(dict(devices))
        if busy:
            known.message.taints.add(key=usage_thresholds.ANNOTATION, value=busy, effect="NoSchedule")
    return known.message


def target(store: Store, known: PodRecord, *, fresh: bool = False) -> SentState | None:
    """The state of a pod that the engine should have; None: it should not have the pod.

    An assumed placement whose bind waits is sent as a bound one, which may be a victim of preemption as long as it
    waits. `fresh`: for an engine without any state, to which every assumed placement is sent as a bound one.
    """
    described = known.described
    if not described.class_id:
        return None
    if known.state is PodState.BOUND:
        is_movable = store.is_movable(known)
        rules, now_us = store.preemption_rules, store.now_us()
        least_preemptor, exempt_until_us = rules.exemption(known, now_us)
        if weaker_us := rules.changes_us(known, now_us):
            store.priority_classes.touch_at(known.uid, weaker_us, now_us)
        return SentState(
            described.class_id,
            store.id_of_node(known.node),
            described.profile,
            known.leaving,
            known.gang.id,
            known.gang.role,
            described.inputs if is_movable else 0,
            started_us=described.started_us,
            lasting=described.lasting,
            unevictable=described.unevictable or known.spared or not store.preemption_rules.preemptible(known),
            checkpoint_us=described.checkpoint_us,
            movable=is_movable,
            daemon=described.daemon,
            queue=known.queue.running_id,
            local_queue=known.queue.local_id,
            least_preemptor=least_preemptor,
            exempt_until_us=exempt_until_us,
        )
    node, assumed = "", known.state is PodState.ASSUMED
    if assumed and (fresh or known.revocable):
        node = store.id_of_node(known.assumed)
    elif assumed and known.sent is not None:
        node = known.sent.node
    elif not known.schedulable or known.blocked or known.gang.blocked:
        return None
    return SentState(
        described.class_id,
        node,
        described.profile,
        False,
        known.gang.id,
        known.gang.role,
        described.inputs,
        started_us=described.started_us if node and not known.revocable else 0,
        lasting=bool(node) and described.lasting,
        nominated=_nominated_on(store, known),
        unevictable=not (known.revocable and store.preemption_rules.preemptible(known)) if node else known.privileged,
        queue=known.queue.running_id if node or store.gangs.keeps(known) else known.queue.id,
        local_queue=known.queue.local_id,
        required_node="" if _pin_of_class(known) else described.pin,
    )


def _nominated_on(store: Store, known: PodRecord) -> str:
    """Id of the node that a waiting pod is nominated on; empty: none, or the node does not exist."""
    if not known.nominated or known.state is not PodState.WAITING or known.nominated not in store.nodes:
        return ""
    return store.id_of_node(known.nominated)
