"""Random clusters of several shapes of nodes, with requests slightly below capacity: the hard case for placement, as
what is free of one resource is on nodes with nothing free of another."""

import numpy as np

from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.constraints import NO_DEMAND, NodeDemand
from firmament_py.model.events import Event
from firmament_py.policy import Policy
from firmament_py.state.cluster import ClusterState
from tests.builders import NOW_US, make_class, make_node, make_tasks, needs, selecting


def over_capacity(seed: int) -> list[Event]:
    """20 to 120 nodes of up to four shapes in two pools, half of the time partly used, and tasks of 5 to 40 classes, a
    third of them with a selector, that request 80 to 100 % of the cpu or memory there is, whichever is scarcer. Slots
    for pods can be scarcer still."""
    rng = np.random.default_rng(seed)
    nodes, classes = int(rng.integers(20, 120)), int(rng.integers(5, 40))
    shapes = [
        (1000 * int(rng.choice([4, 8, 16, 32, 64])), int(rng.choice([2, 4, 8])), int(rng.choice([30, 60, 110])))
        for _ in range(int(rng.integers(2, 5)))
    ]
    shape, pool = rng.integers(0, len(shapes), nodes), rng.integers(0, 2, nodes)
    offer = np.array([(shapes[s][0], shapes[s][0] * shapes[s][1] * 1024 // 1000) for s in shape.tolist()])
    used = (offer * rng.random((nodes, 1)) * 0.6 * rng.random((nodes, 2)) * (rng.random() < 0.5)).astype(np.int64)
    events: list[Event] = []
    for i, (cpu, memory) in enumerate(offer.tolist()):
        labels = {"pool": f"p{pool[i]}", "shape": f"s{shape[i]}"}
        events.append(make_node(f"n{i}", cpu=cpu, memory=memory, pods=shapes[shape[i]][2], labels=labels))
        if used[i].any():
            events.append(make_class(1000 + i, cpu=int(used[i, 0]), memory=int(used[i, 1])))
            events.append(make_tasks([10**6 + i], 1000 + i, on=f"n{i}"))
    cpu = rng.choice([100, 250, 500, 1000, 2000, 4000, 8000], classes)
    requests = np.stack([cpu, cpu * rng.choice([0.5, 1, 2, 4, 8, 12], classes) * 1024 / 1000], axis=1).astype(np.int64)
    mix = rng.dirichlet(np.ones(classes)) / requests.max(axis=1)
    counts = np.floor(mix * rng.uniform(0.8, 1.0) * ((offer - used).sum(axis=0) / (mix @ requests)).min()).astype(int)
    first = 1
    for c, count in enumerate(counts.tolist()):
        demand = _demand(rng, len(shapes))
        if count:
            events.append(make_class(c + 1, cpu=int(requests[c, 0]), memory=int(requests[c, 1]), demand=demand))
            events.append(make_tasks(range(first, first + count), c + 1))
        first += count
    return events


def _demand(rng: np.random.Generator, shapes: int) -> NodeDemand:
    kind = rng.random()
    if kind < 0.2:
        return selecting(needs("pool", "In", f"p{rng.integers(0, 2)}"))
    if kind < 0.3:
        return selecting(needs("shape", "In", f"s{rng.integers(0, shapes)}"))
    return NO_DEMAND


def placed(events: list[Event], policy: Policy) -> int:
    """Number of tasks that one round places."""
    state = ClusterState()
    for event in events:
        assert not state.apply(event).refused
    result = Scheduler(state, policy, OrToolsSolver()).run(NOW_US)
    assert result.stats.dropped == 0
    return result.stats.placed
