"""Usage samples in, placements out: the effect of usage on whole rounds with policies that use it."""

from collections.abc import Mapping

import numpy as np
import pytest

from firmament_py.engine.scheduler import Scheduler
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.events import ClassDefined
from firmament_py.policy import Policy
from firmament_py.usage.usage import Usage
from policies.interference import Interference
from policies.network_aware import NetworkAware
from policies.whare_map import WhareMap
from tests.builders import NOW_US, SECOND_US, Cluster, make_class, make_cluster, make_node, make_tasks

UNKNOWN = (np.nan,) * 3
LABEL = "node.kubernetes.io/instance-type"
NODES = [make_node(name, cpu=1000, memory=1000, labels={LABEL: name}) for name in ("a", "b")]


def measured(
    cluster: Cluster,
    policy: Policy,
    *,
    nodes: Mapping[str, tuple[float, ...]] | None = None,
    tasks: Mapping[int, float] | None = None,
    age_seconds: int = 0,
) -> dict[int, str]:
    """A round under `policy`; nodes: cpu, memory, rx and tx of some; tasks: cpu of some."""
    usage, state, at = Usage(), cluster.state, NOW_US - age_seconds * SECOND_US
    rows = np.array([state.nodes.row[f"id-{name}"] for name in nodes or {}], np.int64)
    of_nodes = np.array(list((nodes or {}).values()), np.float64).reshape(-1, 4)
    usage.note_nodes(state, rows, np.full(len(rows), at), of_nodes, NOW_US)
    uids = np.array(list(tasks or {}), np.uint64)
    of_tasks = np.full((len(uids), 4), np.nan)
    of_tasks[:, 0] = list((tasks or {}).values())
    noted = usage.note_tasks(state, state.task_rows(uids), np.full(len(uids), at), of_tasks, NOW_US)
    assert noted.taken == len(uids)
    return cluster.names(Scheduler(state, policy, OrToolsSolver(), usage=usage).run(NOW_US))


@pytest.mark.parametrize(
    ("age_seconds", "goes_to"), [pytest.param(0, "b", id="fresh"), pytest.param(3600, "a", id="an-hour-old")]
)
def test_network_aware_uses_measured_traffic_that_is_not_requested(age_seconds, goes_to):
    """By requests a costs less; by measured traffic, 8 of 10 Gbit/s, more, until the samples are stale."""
    senders = [ClassDefined(i, {"cpu": 1, "bandwidth.egress": 10**9 * gigabits}) for i, gigabits in ((1, 3), (2, 1))]
    cluster = make_cluster(*NODES, *senders, make_tasks([1], 1, on="b"), make_tasks([2], 2), policy=NetworkAware())
    traffic = (np.nan, np.nan, 0.0, 1e9)  # bytes a second
    assert measured(cluster, NetworkAware(), nodes={"a": traffic}, age_seconds=age_seconds) == {2: goes_to}


@pytest.mark.parametrize(("busy", "goes_to"), [pytest.param("b", "a", id="a"), pytest.param("a", "b", id="b")])
def test_interference_costs_more_on_a_busy_node(busy, goes_to):
    """One rabbit on each; one of the nodes is fully used, although the requests on both are equally low."""
    cluster = make_cluster(
        *NODES,
        make_class(1, cpu=1, traits={"interference-class": "rabbit"}),
        make_class(2, cpu=1, traits={"interference-class": "devil"}),
        *(make_tasks([1], 1, on="a"), make_tasks([2], 1, on="b"), make_tasks([3], 2)),
        policy=Interference(),
    )
    cpu = dict.fromkeys(("a", "b"), 50.0) | {busy: 1000.0}
    used = {name: (amount, *UNKNOWN) for name, amount in cpu.items()}
    assert measured(cluster, Interference(), nodes=used) == {3: goes_to}


@pytest.mark.parametrize(("cpu_on_a", "goes_to"), [pytest.param(300.0, "b", id="b"), pytest.param(30.0, "a", id="a")])
def test_whare_map_learns_which_platform_suits_a_program(cpu_on_a, goes_to):
    """Three tasks on each do the same work, with 100 millicores on b; the fourth goes where that takes less."""
    cluster = make_cluster(
        *NODES,
        make_class(1, cpu=1, traits={"program": "web"}),
        make_class(2, cpu=1, traits={"program": "other"}),
        *(make_tasks([1, 2, 3], 1, on="a"), make_tasks([4, 5, 6], 1, on="b"), make_tasks([7], 1)),
        make_tasks([8], 2, on=goes_to),  # one more there, which alone would send it elsewhere
        policy=WhareMap(),
    )
    used = dict.fromkeys((1, 2, 3), cpu_on_a) | dict.fromkeys((4, 5, 6), 100.0)
    assert measured(cluster, WhareMap(), tasks=used) == {7: goes_to}
