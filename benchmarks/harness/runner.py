"""Runs the cases of a suite and collects their samples."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib import import_module
from typing import Any, Protocol

from benchmarks.harness import environment
from benchmarks.harness.results import CaseResult, Sample, SuiteResult
from benchmarks.harness.specs import Case, Suite

REMEDY = "in a checkout of the source, `make install` or `pip install '.[benchmarks]'` adds"
"""How to get what suites on the synthetic cluster need."""
QUICK = "short"
"""Label of the cases that --quick runs."""


@dataclass(frozen=True, slots=True)
class Options:
    """Options of the command line. `extra` holds those that apply to some suites only."""

    seed: int = 0
    scale: float = 1.0
    extra: Mapping[str, Any] = field(default_factory=dict)

    def scaled(self, count: int, least: int = 1) -> int:
        """A size of a case, multiplied by the chosen scale."""
        return max(least, round(count * self.scale)) if count else 0


class Measure(Protocol):
    """The function `measure` of a suite's module."""

    def __call__(self, case: Case, options: Options) -> Sample:
        """Executes a case once; only the times differ between executions."""
        ...


class CannotMeasureError(Exception):
    """A case cannot be measured here; the message states the reason and the remedy."""


INTERRUPTED = "interrupted before everything was measured"
_UNFINISHED = "not finished"

Listener = Callable[[Case, int, CaseResult], None]
"""Called before each execution with the case, the number of its samples and these samples."""


_MEASURED_BY = {"policies": "round"}
"""Suites that are measured by the module of another one."""


def measure_of(suite: str) -> Measure:
    """The function that measures the cases of a suite.

    Raises CannotMeasureError if a module that the suite needs is not installed.
    """
    name = f"benchmarks.suites.{_MEASURED_BY.get(suite, suite).replace('-', '_')}"
    try:
        measure: Measure = import_module(name).measure
    except ModuleNotFoundError as error:
        if error.name == name:
            raise
        raise CannotMeasureError(
            f"suite {suite} needs the module {error.name}, which is not installed; {REMEDY} it"
        ) from error
    return measure


def choose(suite: Suite, quick: bool, names: Sequence[str]) -> list[Case]:
    """The cases to run: those whose name contains one of `names`, or all; with `quick` only those labelled short."""
    chosen = [case for case in suite.cases if not names or any(name in case.name for name in names)]
    return [case for case in chosen if not quick or QUICK in case.labels]


def resized(cases: Sequence[Case], nodes: int | None, pods: int | None) -> list[Case]:
    """The cases at other sizes, without duplicates and without targets."""
    given = {name: size for name, size in (("nodes", nodes), ("pods", pods)) if size is not None}
    if not given:
        return list(cases)
    found: dict[str, Case] = {}
    for case in cases:
        sizes = {**case.sizes, **given}
        name = "/".join([case.name.partition("/")[0], f"{sizes['nodes']}-nodes", f"{sizes['pods']}-pods"])
        found.setdefault(name, replace(case, name=name, sizes=sizes, targets=(), compared_with=()))
    return list(found.values())


def run(
    suite: Suite,
    cases: Sequence[Case],
    options: Options,
    repeat: int,
    listener: Listener = lambda *_: None,
    measure: Measure | None = None,
    keep: Callable[[SuiteResult], None] = lambda _: None,
) -> SuiteResult:
    """Executes each case `repeat` times. The garbage collector runs between executions, not during them.

    Where figures follow from the seed, sample i uses the seed `seed + i`. `keep` receives the result after each case.
    If a case cannot be measured, or after an interrupt, the result has all samples so far and the reason in `stopped`.
    """
    result = SuiteResult(
        suite=suite.name,
        environment=environment.describe(),
        options={"seed": options.seed, "scale": options.scale, "repeat": repeat, **options.extra},
        metrics={metric.name: {k: v for k, v in asdict(metric).items() if k != "name"} for metric in suite.metrics},
        virtual=suite.virtual,
    )
    result.stopped = _UNFINISHED
    try:
        measure = measure or measure_of(suite.name)
        for case in cases:
            gathered = CaseResult(case.name, dict(case.sizes), target=", ".join(map(str, case.targets)))
            try:
                for done in range(repeat):
                    listener(case, done, gathered)
                    gc.collect()
                    seed = options.seed + done * suite.virtual
                    gathered.add(measure(case, replace(options, seed=seed)), seed)
                gathered.target_met = _met(case, gathered, options)
            finally:
                if gathered.samples or gathered.checked:
                    result.cases.append(gathered)
            keep(result)
    except CannotMeasureError as error:
        result.stopped = str(error)
    except KeyboardInterrupt:
        result.stopped = INTERRUPTED
    else:
        result.stopped = ""
    return result


def _met(case: Case, gathered: CaseResult, options: Options) -> bool | None:
    """Whether a case reached all its targets; None if it has none, or at a scale other than 1."""
    reached = [(target, gathered.median(target.metric)) for target in case.targets]
    if not reached or options.scale != 1.0 or any(value is None for _, value in reached):
        return None
    return all(target.met(value) for target, value in reached if value is not None)
