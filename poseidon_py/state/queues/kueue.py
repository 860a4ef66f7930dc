"""Kueue's queues: ClusterQueues below Cohorts; pods reach them through the LocalQueues of their namespaces.

A LocalQueue has no quota of its own. One that is stopped is a queue of its own, without quotas: its waiting pods are in
that; if it drains, so are its running ones.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Any

from poseidon_py.describe.queues.model import (
    Flavor,
    LocalQueue,
    PastUseRules,
    Queue,
    Quota,
    Rules,
    Sharing,
    Stop,
    Tree,
    Victims,
)
from poseidon_py.devices.device_quotas import DeviceQuotas
from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.quantity import PODS
from poseidon_py.kube.queue_objects import keys, kueue
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.kueue_config import (
    DEFAULT_SAMPLING,
    AdmissionFairSharing,
    Configuration,
    configuration,
)
from poseidon_py.kube.selector_matching import matches
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.gangs.without_marks import WITH_SIZE, queued_levels
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.past_use import unit_weights
from poseidon_py.state.queues.source import STOPPED, Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

_GROUP, _VERSIONS = "kueue.x-k8s.io", ("v1beta2", "v1beta1")
CLUSTER_QUEUES = Resource(_GROUP, "clusterqueues", _VERSIONS)
COHORTS = Resource(_GROUP, "cohorts", (*_VERSIONS, "v1alpha1"))
LOCAL_QUEUES = Resource(_GROUP, "localqueues", _VERSIONS)
FLAVORS = Resource(_GROUP, "resourceflavors", _VERSIONS)
PRIORITIES = Resource(_GROUP, "workloadpriorityclasses", _VERSIONS)
TOPOLOGIES = Resource(_GROUP, "topologies", (*_VERSIONS, "v1alpha1"))
CONFIG = Resource("", "configmaps", ("v1",))
CONFIG_NAME = "kueue-manager-config"

DEFAULT_LOCAL_QUEUE = "default"
"""That of pods and workloads which name none, if the namespace has it."""

_VICTIMS = {
    "Never": Victims.NEVER,
    "LowerPriority": Victims.LOWER_PRIORITY,
    "LowerOrNewerEqualPriority": Victims.LOWER_OR_NEWER_EQUAL_PRIORITY,
    "Any": Victims.ANY,
}
_READERS: Mapping[Resource, Callable[[QueueObject], object]] = {
    CLUSTER_QUEUES: kueue.cluster_queue,
    COHORTS: kueue.cohort,
    LOCAL_QUEUES: kueue.local_queue,
    FLAVORS: kueue.resource_flavor,
    PRIORITIES: kueue.priority_class,
    TOPOLOGIES: kueue.topology,
    CONFIG: configuration,
}
_TOPOLOGIES = ("levels", TOPOLOGIES)
"""What the choices depend on that request a topology."""
_CONFIGURED = ("configured", CONFIG)
"""What the choices depend on that name no queue."""
_ALSO = {FLAVORS: (_TOPOLOGIES,), TOPOLOGIES: (_TOPOLOGIES,), CONFIG: (_CONFIGURED,)}
_STOPS = {"None": Stop.NONE, "Hold": Stop.HOLD, "HoldAndDrain": Stop.HOLD_AND_DRAIN}
_ANY_NUMBER_OF_PODS = 2**40


class Kueue(Source):
    kind = "kueue"
    resources = (CONFIG, TOPOLOGIES, FLAVORS, PRIORITIES, COHORTS, CLUSTER_QUEUES, LOCAL_QUEUES)
    limit_nothing = (CONFIG, TOPOLOGIES, PRIORITIES)
    selectors = MappingProxyType({CONFIG: f"metadata.name={CONFIG_NAME}"})

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._queues: dict[str, kueue.ClusterQueue] = {}
        self._cohorts: dict[str, kueue.Cohort] = {}
        self._local: dict[tuple[str, str], kueue.LocalQueue] = {}
        self._flavors: dict[str, kueue.ResourceFlavor] = {}
        self._priorities: dict[str, kueue.PriorityClass] = {}
        self._topologies: dict[str, kueue.Topology] = {}
        self._configs: dict[tuple[str, str], Configuration] = {}

    @property
    def in_use(self) -> bool:
        return bool(self._queues)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        namespace, name = item.metadata.namespace, item.metadata.name
        objects, key = self._objects_of(resource, namespace, name)
        now = _READERS[resource](item)
        if objects.get(key) == now:
            return set()
        objects[key] = now
        return {(resource, namespace, name), *_ALSO.get(resource, ())}

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        objects, key = self._objects_of(resource, namespace, name)
        objects.pop(key, None)
        return {(resource, namespace, name), *_ALSO.get(resource, ())}

    def _objects_of(self, resource: Resource, namespace: str, name: str) -> tuple[dict[Any, Any], Hashable]:
        """Where the objects of a resource are, and the key of one."""
        if resource == LOCAL_QUEUES:
            return self._local, (namespace, name)
        if resource == CONFIG:
            return self._configs, (namespace, name)
        by_name: dict[Resource, dict[Any, Any]] = {
            CLUSTER_QUEUES: self._queues,
            COHORTS: self._cohorts,
            FLAVORS: self._flavors,
            PRIORITIES: self._priorities,
            TOPOLOGIES: self._topologies,
        }
        return by_name[resource], name

    def has_default(self, namespace: str) -> bool:
        return (namespace, DEFAULT_LOCAL_QUEUE) in self._local

    # -- the queue of a choice --------------------------------------------------------------------------------

    def resolve(self, query: Query) -> Resolution:
        """Pods of Kueue's own Workloads wait for no quota here, and are not evicted, but count."""
        found = self._chosen(query)
        if not _is_of_workload(query):
            return self._with_workload(query, found) if found.key else found
        running = found.running_key or found.key
        return Resolution(name=found.name, running_key=running, preemptible=not running)

    def _with_workload(self, query: Query, found: Resolution) -> Resolution:
        owners = query.owners()
        if not owners:
            return found
        query.depends_on.add((LOCAL_QUEUES, query.namespace, DEFAULT_LOCAL_QUEUE))
        levels = queued_levels(owners, has_default=self.has_default(query.namespace))
        workload = next((each for each in reversed(owners[:levels]) if each.resource in WITH_SIZE), None)
        return found if workload is None else found._replace(workload=workload.uid, workload_us=workload.created_us)

    def _chosen(self, query: Query) -> Resolution:
        name, label = query.label(keys.OWN), keys.OWN
        if name:
            return self._in_queue(query, name, f"label {label}")
        name, label = query.label(keys.KUEUE), keys.KUEUE
        if not name:
            if not query.takes_default:
                return NO_QUEUE
            name = DEFAULT_LOCAL_QUEUE
            query.depends_on.add((LOCAL_QUEUES, query.namespace, name))
            if not self.has_default(query.namespace):
                return self._unnamed(query)
        query.depends_on.add((LOCAL_QUEUES, query.namespace, name))
        local = self._local.get((query.namespace, name))
        full = f"{query.namespace}/{name}"
        if local is None:
            problem = f"LocalQueue {full} does not exist: create it or change label {label}"
            return Resolution(f"localqueue/{full}", full, f"label {label}", problem)
        if _stop_of(local) is not Stop.NONE:
            running = "" if local.stop == "HoldAndDrain" else f"clusterqueue/{local.cluster_queue}"
            stopped = Resolution(f"localqueue/{full}", full, f"label {label}", running_key=running)
            found = self._with_priority(query, stopped)
        else:
            found = self._in_queue(query, local.cluster_queue, f"spec.clusterQueue of LocalQueue {full}")
        return found._replace(local_key=local_key(query.namespace, name))

    def _unnamed(self, query: Query) -> Resolution:
        config = self._config()
        query.depends_on.add(_CONFIGURED)
        if not config.manages_all or not any(each.resource in WITH_SIZE for each in query.owners()):
            return NO_QUEUE
        problem = f"names no queue, which manageJobsWithoutQueueName of Kueue requires: give label {keys.KUEUE}"
        return (
            Resolution("unnamed", "unnamed", f"label {keys.KUEUE}", problem)
            if _selects(config.managed, query)
            else NO_QUEUE
        )

    def _config(self) -> Configuration:
        return self._configs[min(self._configs)] if self._configs else Configuration()

    def named(self, query: Query) -> Resolution:
        return self.resolve(query)

    def _in_queue(self, query: Query, name: str, chosen_by: str) -> Resolution:
        query.depends_on.add((CLUSTER_QUEUES, "", name))
        queue = self._queues.get(name)
        if queue is not None and not _selects(queue.selector, query):
            problem = (
                f"ClusterQueue {name} does not select namespace {query.namespace}: change its spec.namespaceSelector, "
                f"the labels of the namespace, or {chosen_by}"
            )
            return Resolution(f"not selected/{query.namespace}/{name}", name, chosen_by, problem)
        found = Resolution(f"clusterqueue/{name}", name, chosen_by)
        wishes = {each: query.annotation(each) for each in keys.KUEUE_TOPOLOGY}
        if queue is not None and any(wishes.values()):
            query.depends_on.add(_TOPOLOGIES)
            topologies = self._topologies_of(queue)
            if problem := kueue.wrong_level(wishes, topologies):
                return Resolution(f"no level/{query.namespace}/{name}", name, chosen_by, problem)
            level = wishes[keys.KUEUE_REQUIRED] or wishes[keys.KUEUE_PREFERRED]
            found = found._replace(topology_levels=kueue.levels_from(level, topologies))
        return self._with_priority(query, found)

    def _topologies_of(self, queue: kueue.ClusterQueue) -> list[kueue.Topology]:
        """Those of its flavors."""
        flavors = (self._flavors[name] for name in _flavor_names(queue) if name in self._flavors)
        names = dict.fromkeys(flavor.topology for flavor in flavors)
        return [self._topologies[name] for name in names if name in self._topologies]

    def _with_priority(self, query: Query, found: Resolution) -> Resolution:
        name = query.label(keys.KUEUE_PRIORITY)
        if not name:
            return found
        query.depends_on.add((PRIORITIES, "", name))
        if (known := self._priorities.get(name)) is not None:
            return found._replace(priority=known.value)
        label = keys.KUEUE_PRIORITY
        problem = f"WorkloadPriorityClass {name} does not exist: create it or change label {label}"
        running = found.running_key or found.key  # what runs still counts
        return Resolution(f"no priority/{name}", found.name, f"label {label}", problem, running_key=running)

    # -- the tree ---------------------------------------------------------------------------------------------

    def tree(self) -> Tree:
        flavors = [
            Flavor(each.name, tuple(sorted(each.node_labels.items())), each.taints, each.tolerations)
            for each in self._flavors.values()
        ]
        config = self._config()
        weights = {each.weight for each in self._queues.values()} | {each.weight for each in self._cohorts.values()}
        weighted = bool(weights - {None})
        sharing = Sharing.FAIR if (weighted if config.fair is None else config.fair) else Sharing.CLASSICAL
        rules = Rules(sharing, past_use=self._past_use(), exempt_prefixes=config.exempt_prefixes)
        tree = make_tree(self._all_queues(), flavors, rules, "spec.parentName")
        return replace(tree, local_queues=tuple(self._local_queues()))

    def device_quotas(self, tree: Tree) -> DeviceQuotas:
        mapped, uncounted = self._config().device_classes
        return DeviceQuotas(dict(mapped), dict(uncounted), exclusive=True)

    def _past_use(self) -> PastUseRules:
        sharing = self._config().sharing or AdmissionFairSharing(0.0, DEFAULT_SAMPLING, {})
        weights = unit_weights(sharing.weights)
        return PastUseRules(sharing.half_life, sampling_seconds=sharing.sampling, resource_weights=weights)

    def _local_queues(self) -> Iterator[LocalQueue]:
        for local in self._local.values():
            key, full = local_key(local.namespace, local.name), f"{local.namespace}/{local.name}"
            yield LocalQueue(key, full, f"clusterqueue/{local.cluster_queue}", local.weight)

    def _all_queues(self) -> Iterator[Queue]:
        implied = {each.cohort for each in self._queues.values()} | {each.parent for each in self._cohorts.values()}
        for name in sorted(implied - self._cohorts.keys() - {""}):
            yield Queue(f"cohort/{name}", name, unlimited=False)
        for cohort in self._cohorts.values():
            yield Queue(
                f"cohort/{cohort.name}",
                cohort.name,
                _cohort_key(cohort.parent),
                self._quotas(cohort.groups),
                tuple(group.resources for group in cohort.groups),
                cohort.weight,
                stop=Stop.HOLD if cohort.closed_by else Stop.NONE,
                unlimited=False,
            )
        for queue in self._queues.values():
            yield self._cluster_queue(queue)
        for local in self._local.values():
            if (stop := _stop_of(local)) is not Stop.NONE:
                full = f"{local.namespace}/{local.name}"
                yield Queue(f"localqueue/{full}", full, stop=stop)

    def _cluster_queue(self, queue: kueue.ClusterQueue) -> Queue:
        counts_pods = any(PODS in group.resources for group in queue.groups)
        resources = [group.resources for group in queue.groups]
        quotas = self._quotas(queue.groups)
        if resources and not counts_pods:  # Kueue counts pods where their number has a quota only
            resources[0] = (*resources[0], PODS)
            quotas += tuple(
                Quota(flavor, PODS, _ANY_NUMBER_OF_PODS, implied=True)
                for flavor in queue.groups[0].flavors
                if flavor in self._flavors
            )
        return Queue(
            f"clusterqueue/{queue.name}",
            queue.name,
            _cohort_key(queue.cohort),
            quotas,
            tuple(resources),
            queue.weight,
            unlimited=self._config().ignores_undeclared,
            within=_VICTIMS[queue.within],
            reclaim=_VICTIMS[queue.reclaim],
            borrow_within=_VICTIMS[queue.borrow_within],
            borrow_within_threshold=queue.borrow_threshold,
            strict_fifo=queue.strict_fifo,
            stop=max(_STOPS[queue.stop], Stop.HOLD if self._missing(queue)[0] else Stop.NONE),
            fungibility=(
                queue.fungibility.next_to_avoid_borrowing,
                not queue.fungibility.next_to_avoid_preemption,
                queue.fungibility.preemption_over_borrowing,
            ),
            by_past_use=queue.by_past_use,
        )

    def _missing(self, queue: kueue.ClusterQueue) -> tuple[str, str]:
        """Why a queue takes no pods, in words and as the reason of a condition; empty: all that it names exists."""
        if queue.closed_by:
            return queue.closed_by, ""
        if why := self._config().closed_by:
            return f"ConfigMap {CONFIG_NAME}: {why}", ""
        named = _flavor_names(queue)
        missing = [flavor for flavor in named if flavor not in self._flavors]
        if missing:
            problem = f"ResourceFlavor {', '.join(missing)} does not exist; create it or change spec.resourceGroups"
            return problem, "FlavorNotFound"
        for name in named:
            if self._flavors[name].closed_by:
                return f"ResourceFlavor {name} cannot be used: {self._flavors[name].closed_by}", "FlavorInvalid"
            topology = self._flavors[name].topology
            if topology and topology not in self._topologies:
                remedy = f"create it or change spec.topologyName of ResourceFlavor {name}"
                return f"Topology {topology} does not exist; {remedy}", "TopologyNotFound"
        return "", ""

    def _quotas(self, groups: Iterable[kueue.ResourceGroup]) -> tuple[Quota, ...]:
        return tuple(
            Quota(quota.flavor, quota.resource, quota.nominal, quota.borrowing, quota.lending)
            for group in groups
            for quota in group.quotas
            if quota.flavor in self._flavors and not quota.resource.startswith(self._config().exempt_prefixes)
        )

    def declared(self) -> Iterable[Declared]:
        refs = self.refs
        for queue in self._queues.values():
            why, reason = self._missing(queue)
            if not why and queue.stop != "None":
                why, reason = f"spec.stopPolicy is {queue.stop}", STOPPED
            ref = refs[CLUSTER_QUEUES, "", queue.name]
            yield Declared(ref, f"clusterqueue/{queue.name}", queue.problems, why, reason)
        for cohort in self._cohorts.values():
            ref = refs[COHORTS, "", cohort.name]
            yield Declared(ref, f"cohort/{cohort.name}", cohort.problems, cohort.closed_by)
        for local in self._local.values():
            why, reason = local.closed_by, ""
            if not why and local.stop != "None":
                why, reason = f"spec.stopPolicy is {local.stop}", STOPPED
            if local.cluster_queue not in self._queues:
                reason = "ClusterQueueDoesNotExist"
                why = f"ClusterQueue {local.cluster_queue} does not exist; create it or change spec.clusterQueue"
            ref, key = refs[LOCAL_QUEUES, local.namespace, local.name], local_key(local.namespace, local.name)
            yield Declared(ref, key, local.problems, why, reason)
        for (namespace, name), config in self._configs.items():
            yield Declared(refs[CONFIG, namespace, name], "", config.problems)
        for flavor in self._flavors.values():
            ref, remarks = refs[FLAVORS, "", flavor.name], flavor.remarks
            yield Declared(ref, "", (*flavor.problems, *remarks), remarks=remarks)
        for topology in self._topologies.values():
            yield Declared(refs[TOPOLOGIES, "", topology.name], "", topology.problems)
        for priority in self._priorities.values():
            yield Declared(refs[PRIORITIES, "", priority.name], "", priority.problems)


def _flavor_names(queue: kueue.ClusterQueue) -> list[str]:
    return list(dict.fromkeys(flavor for group in queue.groups for flavor in group.flavors))


def local_key(namespace: str, name: str) -> str:
    """Of a LocalQueue, as a way into a ClusterQueue."""
    return f"local/{namespace}/{name}"


def _is_of_workload(query: Query) -> bool:
    """Whether pods are part of a Workload, as Kueue marks them when it gates or admits them."""
    marked = query.label(keys.KUEUE_MANAGED) == "true" or query.label(keys.KUEUE_PODSET)
    return bool(marked or query.annotation(keys.KUEUE_WORKLOAD))


def _stop_of(local: kueue.LocalQueue) -> Stop:
    return max(_STOPS[local.stop], Stop.HOLD if local.closed_by else Stop.NONE)


def _cohort_key(name: str) -> str:
    return f"cohort/{name}" if name else ""


def _selects(selector: LabelSelector | None, query: Query) -> bool:
    return selector is not None and matches(selector, query.namespace_labels())
