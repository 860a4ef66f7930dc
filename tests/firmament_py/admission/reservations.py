"""Gangs and tasks of clusters in which capacity is reserved."""

from tests.builders import (
    NOW_US,
    SECOND_US,
    Cluster,
    make_class,
    make_gang,
    make_tasks,
)
from tests.firmament_py.gang_builders import OVERDUE_US

LONG, MINUTE, TWO, THREE = 1, 2, 3, 4


CLASSES = [
    make_class(LONG, gpu=1),  # says nothing
    make_class(MINUTE, gpu=1, expected_us=60 * SECOND_US),
    make_class(TWO, gpu=1, expected_us=120 * SECOND_US),
    make_class(THREE, gpu=1, expected_us=180 * SECOND_US),
]


def gang_of(count: int, number: int = 1, cls: int = LONG, created_us: int = OVERDUE_US, **fields):
    uids = range(100 * number + 1, 100 * number + 1 + count)
    return [make_gang(number, count, created_us=created_us, **fields), make_tasks(uids, cls, gang=number)]


def running(uid: int, cls: int, node: str, seconds_ago: int = 0, **fields):
    return make_tasks([uid], cls, on=node, started_us=NOW_US - seconds_ago * SECOND_US, **fields)


def kept_until(cluster: Cluster) -> list[int]:
    """Seconds from now on until each gang with a reservation is expected to fit, -1: unknown."""
    found = cluster.scheduler.gang_starts_us.values()
    return [(start - NOW_US) // SECOND_US if start else -1 for start in found]
