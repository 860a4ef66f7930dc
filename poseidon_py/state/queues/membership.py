"""What the resolved queue of a pod means for its record."""

from poseidon_py.describe.queues.model import id_of
from poseidon_py.state.queues.choice import NO_QUEUE, Resolution
from poseidon_py.state.records import NO_QUEUE as NO_MEMBERSHIP
from poseidon_py.state.records import QueueMembership


def counted(found: Resolution, membership: QueueMembership) -> QueueMembership:
    """The membership of pods of another scheduler: their use counts, and nothing else of the queue concerns them."""
    if found.problem or not membership.running_id:
        return NO_MEMBERSHIP
    return QueueMembership(running_id=membership.running_id, preemptible=False, local_id=membership.local_id)


def membership_of(found: Resolution, created_us: int) -> QueueMembership:
    """`created_us`: when the workload was created; 0: see the pods."""
    if found == NO_QUEUE:
        return NO_MEMBERSHIP
    queue = id_of(found.key) if found.key else 0
    running = id_of(found.running_key) if found.running_key else queue
    local = id_of(found.local_key) if found.local_key else 0
    return QueueMembership(
        queue,
        running,
        found.priority,
        found.never_preempts,
        found.preemptible,
        found.notice,
        local,
        found.topology_levels,
        created_us,
        found.node_pool,
    )
