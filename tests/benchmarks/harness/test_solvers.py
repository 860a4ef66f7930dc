"""The solver suite: solvers of other packages are found and checked, on networks of several shapes."""

from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest

from benchmarks.harness import runner, solvers, specs
from benchmarks.harness.runner import Options
from benchmarks.loads.quincy import SHAPES
from benchmarks.suites import solver as suite_module
from firmament_py.flow.solver import OrToolsSolver


class Theirs:
    """A correct solver: ours."""

    def solve(self, network):
        return OrToolsSolver().solve(network)


class Wrong(Theirs):
    """A solver with an infeasible flow and a wrong cost."""

    def solve(self, network):
        found = super().solve(network)
        return replace(found, flow=found.flow + 1, cost=found.cost + 7)


class Broken(Theirs):
    def solve(self, network):
        raise RuntimeError("out of memory")


class NoSolver:
    pass


@pytest.fixture
def install(monkeypatch):
    """Registers a class of this module, or another object, as a solver."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(solvers, "entry_points", lambda group: [e for e in found if e.group == group])

    def register(name, target):
        found.append(EntryPoint(name, target if ":" in target else f"{__name__}:{target}", "firmament.solvers"))

    return register


def failed():
    """The sample of the smallest case, and its failed checks."""
    sample = suite_module.measure(specs.load("solver").cases[0], Options())
    return sample, [(check.name, check.detail) for check in sample.checks if not check.ok]


def test_an_installed_solver_is_measured(install):
    install("theirs", "Theirs")
    suite = specs.load("solver")
    assert suite.metric("theirs_s").title == "theirs"
    found = runner.run(suite, suite.cases[:1], Options(), 1)
    assert found.sound
    assert found.cases[0].samples["theirs_s"][0] > 0
    assert found.metrics["theirs_s"] == {"title": "theirs", "unit": "s", "better": "lower"}


def test_without_other_solvers_ours_are_measured(install):
    assert [metric.name for metric in specs.load("solver").metrics] == ["ortools_s", "networkx_s", "speedup"]
    sample, wrong = failed()
    assert (set(sample.metrics), wrong) == ({"ortools_s", "networkx_s", "speedup"}, [])


def test_a_wrong_answer_fails(install):
    install("wrong", "Wrong")
    _, wrong = failed()
    (flow, why), (cost, _) = wrong
    assert (flow, cost) == ("wrong finds an optimum", "wrong finds the least cost")
    assert "vertices without flow conservation" in why
    assert "is the difference to the flow's cost" in why


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("Broken", "RuntimeError: out of memory"),
        ("NoSolver", "it lacks a method solve(network)"),
        ("Nowhere", "it cannot be loaded: AttributeError"),
        ("nowhere_at_all:X", "it cannot be loaded: ModuleNotFoundError"),
    ],
)
def test_a_failing_solver_affects_no_other(install, target, why):
    install("other", target)
    install("theirs", "Theirs")
    sample, ((name, detail),) = failed()
    assert name == "other solves the network"
    assert why in detail
    assert {"theirs_s", "ortools_s"} <= set(sample.metrics)


def test_a_duplicate_name_is_reported(install):
    install("twice", "Theirs")
    install("twice", "Wrong")
    _, ((name, detail),) = failed()
    assert (name, "registered 2 times" in detail) == ("twice solves the network", True)
    install("or-tools", "Wrong")  # ours stay ours
    assert solvers.further() == ["twice"]


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_solved_by_both(shape):
    cases = [case for case in specs.load("solver").cases if case.name.startswith(f"quincy-{shape}/")]
    assert [case.sizes["nodes"] for case in cases] == [20, 100, 1000]
    sample = suite_module.measure(cases[0], Options(scale=0.5))
    assert [check.detail for check in sample.checks if not check.ok] == []
    assert sample.facts["arcs"] > 1000
    assert "networkx_s" in sample.metrics
