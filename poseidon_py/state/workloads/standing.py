"""Where a suspended workload stands: its queue, its priority, and who decides when it is resumed."""

from collections.abc import Callable, Iterable, Sequence

from poseidon_py.kube.objects import Metadata, OwnerReference, Pod
from poseidon_py.state.gangs.model import OwnerOrGroup
from poseidon_py.state.gangs.owner_kinds import TRAIN_JOBS
from poseidon_py.state.gangs.without_marks import is_queued, names_a_queue
from poseidon_py.state.queues.choice import Resolution
from poseidon_py.state.queues.registry import QueueRegistry
from poseidon_py.state.records import PodRecord

_DEFAULT_SCHEDULER = frozenset(("default-scheduler",))
_KUEUE = "kueue"


class Standing:
    """Lookups. The pods of a workload choose its queue: a record stands for them as long as there are none."""

    def __init__(
        self,
        queues: QueueRegistry,
        priority_classes: Callable[[], Iterable[OwnerOrGroup]],
        scheduler_names: frozenset[str],
        units: Callable[[], bool],
        above: Callable[[OwnerOrGroup], Sequence[OwnerOrGroup]],
    ) -> None:
        """`units`: whether workloads in Kueue's queues are admitted by this scheduler, as a whole. `above`: the owner
        of an owner, the owner of that, and so on, as far as they are known."""
        self._queues = queues
        self._priority_classes = priority_classes
        self._scheduler_names = scheduler_names
        self._units = units
        self._above = above

    def stand_in(self, workload: OwnerOrGroup) -> PodRecord:
        """A record for the pods that a workload would have; `forget` it."""
        owner = OwnerReference(uid=workload.uid, name=workload.name, controller=True)
        metadata = Metadata(workload.name, workload.namespace, f"workload/{workload.uid}", owners=[owner])
        pod = Pod(metadata)
        record = PodRecord(pod, 0, 0.0)
        record.observed.scheduler = "poseidon"
        self._queues.describe(record, pod)
        return record

    def forget(self, record: PodRecord) -> None:
        self._queues.leave(record.uid)

    def queue_of(self, record: PodRecord) -> Resolution:
        self._queues.describe(record, None)
        return self._queues.resolution_of(record)

    def problem_of(self, record: PodRecord) -> str:
        """Why no queue takes the pods, and the remedy; empty: a queue takes them, or they are in none."""
        self._queues.describe(record, None)
        return self._queues.problem_of(record)

    def priority_of(self, workload: OwnerOrGroup, record: PodRecord) -> int:
        if record.queue.priority is not None:
            return record.queue.priority
        name = workload.suspension.priority_class if workload.suspension is not None else ""
        values = [
            each.spec["value"]
            for each in self._priority_classes()
            if (each.name == name if name else each.spec["default"])
        ]
        return min((value for value in values if isinstance(value, int)), default=0)

    def is_admitted_here(self, workload: OwnerOrGroup, *, whoever_schedules: bool = False) -> bool:
        """Whether this scheduler decides when a workload in a queue of Kueue's starts. `whoever_schedules`: whatever
        scheduler its pods name."""
        has_default = self._queues.has_default(workload.namespace)
        if not (self._units() and is_queued(workload, self._above(workload), has_default=has_default)):
            return False
        suspension = workload.suspension
        if whoever_schedules or suspension is None:
            return True
        named = suspension.schedulers or _DEFAULT_SCHEDULER
        unknown = workload.resource == TRAIN_JOBS and not suspension.schedulers  # its runtime has the templates
        return unknown or bool(named & self._scheduler_names)

    def is_kueues(self, workload: OwnerOrGroup) -> bool:
        """Whether Kueue's own controller may decide about a workload. It labels those that name no queue itself."""
        if not names_a_queue(workload) or self._queues.kinds.admits_workloads:
            return False
        source = self._queues.kinds.sources.get(_KUEUE)
        return source is None or source.in_use
