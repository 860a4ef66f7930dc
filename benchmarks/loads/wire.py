"""An EngineLoad as messages of the service contract."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.loads.engine import EngineLoad
from firmament_py.model.events import TasksObserved
from protos.gen import flow_pb2

_TASKS_AT_ONCE = 5_000
_NODES_AT_ONCE = 1_000


def everything(load: EngineLoad) -> Iterator[flow_pb2.Update]:
    """The stream of a Resync: nodes, classes, then tasks, in batches as a bridge sends them."""
    for first in range(0, len(load.nodes), _NODES_AT_ONCE):
        update = flow_pb2.Update()
        for node in load.nodes[first : first + _NODES_AT_ONCE]:
            described = update.nodes.add(id=node.id, name=node.name, allocatable=node.allocatable, labels=node.labels)
            for taint in node.taints:
                described.taints.add(key=taint.key, value=taint.value, effect=taint.effect)
        yield update
    update = flow_pb2.Update()
    for one in load.classes:
        message = update.classes.add(id=one.id, requests=one.requests, priority=one.priority, name=one.name)
        for requirement in one.demand.selector:
            message.node_selector.add(key=requirement.key, operator=requirement.operator, values=requirement.values)
        for t in one.demand.tolerations:
            message.tolerations.add(key=t.key, operator=t.operator, value=t.value, effect=t.effect)
    yield update
    for first in range(0, load.running + load.spec.pods, _TASKS_AT_ONCE):
        yield flow_pb2.Update(tasks=tasks(load.tasks(slice(first, first + _TASKS_AT_ONCE))))
    yield flow_pb2.Update(complete=True)


def tasks(event: TasksObserved) -> flow_pb2.Tasks:
    """Columns of tasks as a message."""
    return flow_pb2.Tasks(
        uid=event.uid.tolist(),
        class_id=event.class_id.tolist(),
        job_id=event.job_id.tolist(),
        created_us=event.created_us.tolist(),
        node=event.node.tolist(),
        name=event.names,
        nodes=event.nodes,
    )


def confirmation(load: EngineLoad, placed: flow_pb2.Placements, first: int, count: int) -> flow_pb2.Tasks:
    """Placements first .. first + count of a round as the bridge reports them once they are bound."""
    chosen = range(first, min(first + count, len(placed.task_uid)))
    message = flow_pb2.Tasks(nodes=placed.nodes)
    for i in chosen:
        row = placed.task_uid[i] - 1
        task = load.tasks(slice(row, row + 1))
        message.uid.append(placed.task_uid[i])
        message.class_id.append(int(task.class_id[0]))
        message.job_id.append(int(task.job_id[0]))
        message.created_us.append(int(task.created_us[0]))
        message.node.append(placed.node[i] + 1)
        message.name.append(task.names[0])
    return message
