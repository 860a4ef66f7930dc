"""Benchmarks as data: every suite is a YAML file beside its module in suites/, read into frozen values here.

    title, about           what is measured and how
    metrics                name -> unit, better (lower or higher), title; the first is the suite's figure
    repeat                 default number of samples of each case (--repeat)
    virtual                true: figures follow from the seed, so each sample has a different seed
    options                which of --nodes, --pods, --kubeconfig, --against, --start apply
    defaults, cases        sizes and labels of each case; `target` is a bound on a metric at full scale, or a
                           list of bounds, `compared_with` lists figures of other systems for the same case

A case with `policy: each` in its sizes becomes one case for each registered policy and each baseline. A metric with
`{solver}` in its name becomes one metric for each installed solver of another package (harness/solvers.py).

An unknown field is an error, so that a typo does not silently measure something else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields, replace
from importlib import resources
from typing import Any

import yaml

from benchmarks.harness import solvers
from firmament_py.policy import registry

EACH = "each"
SOLVER = "{solver}"
BASELINES = ("first-fit", "least-allocated")
"""Simple schedulers to compare policies with (simulate/baselines.py)."""


class SpecError(ValueError):
    """A suite's description is invalid; the message names file and field."""


@dataclass(frozen=True, slots=True)
class Metric:
    """A measured figure. `better` is lower or higher."""

    name: str
    title: str
    unit: str = "s"
    better: str = "lower"


@dataclass(frozen=True, slots=True)
class Target:
    """The bound that `metric` must reach at full scale: exactly one of the two is given."""

    metric: str
    at_most: float | None = None
    at_least: float | None = None

    def met(self, value: float) -> bool:
        """Whether a value is within the bound."""
        if self.at_most is not None:
            return value <= self.at_most
        return self.at_least is not None and value >= self.at_least

    def __str__(self) -> str:
        bound = f"<= {self.at_most:g}" if self.at_most is not None else f">= {self.at_least:g}"
        return f"{self.metric} {bound}"


@dataclass(frozen=True, slots=True)
class Rival:
    """A figure of another system for the same case, and its source."""

    system: str
    value: float


@dataclass(frozen=True, slots=True)
class Case:
    """One benchmark of a suite."""

    name: str
    sizes: Mapping[str, Any]
    labels: tuple[str, ...] = ()
    targets: tuple[Target, ...] = ()
    compared_with: tuple[Rival, ...] = ()


@dataclass(frozen=True, slots=True)
class Suite:
    """Cases that are measured by the same function."""

    name: str
    title: str
    about: str
    metrics: tuple[Metric, ...]
    cases: tuple[Case, ...]
    repeat: int = 3
    options: tuple[str, ...] = ()
    """Options of `run` that apply to this suite, of those that do not apply to all."""
    virtual: bool = False
    """Whether the figures follow from the seed: sample i of a case uses seed + i."""

    def metric(self, name: str) -> Metric:
        """The metric of that name; KeyError if the suite has none."""
        for metric in self.metrics:
            if metric.name == name:
                return metric
        raise KeyError(name)


def available() -> list[str]:
    """Names of all suites, in the order of listing."""
    return sorted(
        entry.name.removesuffix(".yaml").replace("_", "-")
        for entry in resources.files("benchmarks.suites").iterdir()
        if entry.name.endswith(".yaml")
    )


def load(name: str) -> Suite:
    """The suite of that name. Raises SpecError, which lists all names."""
    if name not in available():
        raise SpecError(f"unknown suite {name!r}; choose one of: {', '.join(available())}")
    text = resources.files("benchmarks.suites").joinpath(f"{name.replace('-', '_')}.yaml").read_text()
    raw = yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    raw["metrics"] = {key: about for one in raw["metrics"].items() for key, about in _each_solver(*one)}
    suite = parse(name, raw)
    return replace(suite, cases=tuple(_for_each_policy(suite.cases)))


def _each_solver(key: str, about: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    if SOLVER not in key:
        return [(key, about)]
    return [(key.replace(SOLVER, name), {**about, "title": name}) for name in solvers.further()]


def _for_each_policy(cases: Iterable[Case]) -> Iterator[Case]:
    names: list[str] = []
    for case in cases:
        if case.sizes.get("policy") != EACH:
            yield case
            continue
        names = names or [info.name for info in registry.available() if not info.error] + list(BASELINES)
        for name in names:
            yield replace(case, name=f"{case.name}/{name}", sizes={**case.sizes, "policy": name})


def parse(name: str, raw: Mapping[str, Any]) -> Suite:
    """A suite from its parsed YAML."""
    _known(raw, {"title", "about", "metrics", "repeat", "virtual", "options", "defaults", "cases"}, name)
    metrics = tuple(
        Metric(name=key, **_checked(Metric, value, f"{name}: metric {key}")) for key, value in raw["metrics"].items()
    )
    suite = Suite(
        name=name,
        title=raw["title"],
        about=raw["about"].strip(),
        metrics=metrics,
        cases=tuple(_case(one, raw.get("defaults", {}), name) for one in raw["cases"]),
        repeat=raw.get("repeat", 3),
        options=tuple(raw.get("options", ())),
        virtual=raw.get("virtual", False),
    )
    seen: set[str] = set()
    for case in suite.cases:
        if case.name in seen:
            raise SpecError(f"{name}: case {case.name} appears twice")
        seen.add(case.name)
        for target in case.targets:
            if target.metric not in {metric.name for metric in metrics}:
                raise SpecError(f"{name}: the target of {case.name} names the unknown metric {target.metric}")
            if (target.at_most is None) is (target.at_least is None):
                raise SpecError(f"{name}: the target of {case.name} needs exactly one of at_most and at_least")
    return suite


def _case(raw: Mapping[str, Any], defaults: Mapping[str, Any], where: str) -> Case:
    where = f"{where}: case {raw.get('name', '?')}"
    _known(raw, {field.name for field in fields(Case)} - {"targets"} | {"target"}, where)
    target = raw.get("target", [])
    targets = target if isinstance(target, list) else [target]
    return Case(
        name=raw["name"],
        sizes={**defaults, **raw["sizes"]},
        labels=tuple(raw.get("labels", ())),
        targets=tuple(Target(**_checked(Target, one, f"{where}: target")) for one in targets),
        compared_with=tuple(Rival(**_checked(Rival, one, where)) for one in raw.get("compared_with", ())),
    )


def _checked(cls: type, raw: Mapping[str, Any], where: str) -> dict[str, Any]:
    _known(raw, {field.name for field in fields(cls)}, where)
    return dict(raw)


def _known(raw: Mapping[str, Any], names: set[str], where: str) -> None:
    unknown = set(raw) - names
    if unknown:
        raise SpecError(f"{where}: unknown field {sorted(unknown)[0]!r}; known fields: {', '.join(sorted(names))}")
