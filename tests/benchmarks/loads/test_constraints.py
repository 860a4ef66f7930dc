"""The suite of constraints: its rounds are valid, and its check finds violations."""

import pytest

from benchmarks.harness import specs
from benchmarks.harness.runner import Options
from benchmarks.loads.constraints import ConstraintSpec, load
from benchmarks.suites import constraints as suite


@pytest.mark.parametrize("case", specs.load("constraints").cases, ids=lambda c: c.name)
def test_every_round_is_sound_at_a_twentieth_of_its_size(case):
    sample = suite.measure(case, Options(scale=0.05))
    assert [check for check in sample.checks if not check.ok] == []
    assert sample.metrics["placed"] > 0


# nodes 0, 1, 2 are in zones 0, 1, 2; tasks take turns in their groups: 1 and 3 are of group 0, 2 and 4 of group 1
@pytest.mark.parametrize(
    ("shape", "sound", "wrong"),
    [
        pytest.param("affinity", {1: 0, 3: 0, 2: 1, 4: 1}, {1: 0, 3: 1, 2: 1, 4: 1}, id="affinity"),
        pytest.param("affinity", {1: 0, 2: 1, 4: 1}, {1: 0, 2: 1, 4: 2}, id="the-first-of-a-group-goes-anywhere"),
        pytest.param("anti-affinity", {1: 0, 3: 1, 2: 0, 4: 1}, {1: 0, 3: 0, 2: 1, 4: 2}, id="anti-affinity"),
        pytest.param("spread", {1: 0, 3: 1, 2: 1, 4: 2}, {1: 0, 3: 0, 2: 1, 4: 2}, id="spread"),
        pytest.param("services", {1: 0, 3: 1, 2: 1, 4: 2}, {1: 0, 3: 0, 2: 1, 4: 2}, id="services"),
    ],
)
def test_the_check_finds_violations(shape, sound, wrong):
    made = load(ConstraintSpec(shape, nodes=3, pods=4, groups=2))

    def violations(where):
        return made.violations({uid: f"node-{node:05d}" for uid, node in where.items()})

    assert not violations(sound)
    assert violations(wrong)


def test_the_check_finds_a_broken_symmetry():
    made = load(ConstraintSpec("symmetry", nodes=3, pods=2, groups=2, before=1))
    assert not made.violations({1: "node-00000", 2: "node-00001", 3: "node-00002"})
    assert made.violations({1: "node-00000", 2: "node-00000", 3: "node-00002"})
