"""Clusters for tests of gangs, and the results of their rounds."""

from firmament_py.explain.reason import Reason
from firmament_py.model.constraints import PeerDemand, PeerTerm
from firmament_py.model.options import RESERVE_AFTER_US
from tests.builders import NOW_US, Cluster, make_class, make_node, needs, tasks_like

OVERDUE_US = NOW_US - RESERVE_AFTER_US
GPU1 = make_class(1, gpu=1)
WITH_LEAD = PeerDemand(affinity=(PeerTerm(tasks_like(needs("app", "In", "lead")), "host"),))
RACKS = {"n0": "a", "n1": "a", "n2": "b", "n3": "b"}


def gpu_nodes(*sizes: int, **racks: str):
    """Nodes n0, n1, ... with the given numbers of GPUs; racks: by node."""
    return [
        make_node(f"n{i}", gpu=gpus, labels={"rack": racks[f"n{i}"]} if f"n{i}" in racks else {})
        for i, gpus in enumerate(sizes)
    ]


def host_nodes(*sizes: int):
    return [make_node(f"n{i}", gpu=gpus, labels={"host": f"n{i}"}) for i, gpus in enumerate(sizes)]


def placed_gangs(cluster: Cluster, now_us: int = NOW_US) -> set[int]:
    """Hundreds of the uids that a round places: gang 1 has members 101, 102, ..."""
    return {uid // 100 for uid in cluster.round(now_us)}


def why(cluster: Cluster, now_us: int = NOW_US) -> list[tuple[Reason, ...]]:
    return [waiting.reasons for waiting in cluster.run(now_us).waiting]
