"""The line that describes a gang."""

from typing import Any

import pytest

from poseidon_py.app.status import gang_json
from poseidon_py.cli.rendering.render import gang_line
from poseidon_py.state.gangs.group import Group
from protos.gen import flow_pb2

STARTS_US = 1_767_225_660_000_000


def standing(**extra: Any) -> flow_pb2.GangStanding:
    fields: dict[str, Any] = {"name": "ns/g", "minimum": 4, "present": 6, "placed": 1, "fits": -1} | extra
    return flow_pb2.GangStanding(**fields)


@pytest.mark.parametrize(
    ("gang", "whole", "line"),
    [
        (standing(), False, "gang ns/g: minimum 4, 6 present, 1 placed"),
        (standing(maximum=5), False, "gang ns/g: minimum 4, maximum 5, 6 present, 1 placed"),
        (standing(), True, "gang ns/g: minimum 4, 6 present, 1 placed, disrupted only as a whole"),
        (
            standing(present=2, missing=2),
            False,
            "gang ns/g: minimum 4, 2 present, 1 placed; 2 more must be created before it can be placed",
        ),
        (
            standing(lacks={"memory": 2**30, "cpu": 7000}),
            False,
            "gang ns/g: minimum 4, 6 present, 1 placed; it starts when 7 cpu, 1Gi memory more are free in the cluster",
        ),
        (
            standing(fits=2, reserves=True),
            False,
            "gang ns/g: minimum 4, 6 present, 1 placed; the last round had capacity for at most 2 of the 3 members "
            "still to be placed; capacity is reserved for it",
        ),
        (
            standing(reserves=True, starts_us=STARTS_US),
            False,
            "gang ns/g: minimum 4, 6 present, 1 placed; capacity is reserved for it, "
            "expected to suffice at 2026-01-01T00:01:00Z",
        ),
    ],
)
def test_one_line(gang, whole, line):
    group = Group("k", message=flow_pb2.Gang(disrupted_whole=whole))
    assert gang_line(gang_json(gang, group)) == line


def test_the_json_of_a_gang():
    assert gang_json(standing(maximum=5, fits=2), None) == {
        "name": "ns/g",
        "minimum": 4,
        "succeeded": 0,
        "maximum": 5,
        "present": 6,
        "placed": 1,
        "missing": 0,
        "fits": 2,
        "lacks": {},
        "reserves": False,
        "starts": None,
        "disruption": "single",
    }
