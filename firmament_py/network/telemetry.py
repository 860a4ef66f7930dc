"""Telemetry of a round: seconds by stage, and the number of solved networks."""

from collections import Counter
from time import perf_counter


class Telemetry:
    """stage_seconds: seconds by stage. solves: networks solved to place tasks; trials: networks solved only to find out
    what could be placed. pricing_rounds: networks built again because omitted arcs could have a negative reduced cost.
    unsolved: networks without a flow, by the solver's status; compressed: those solved with smaller waiting costs.
    """

    def __init__(self) -> None:
        self.stage_seconds: dict[str, float] = {}
        self.solves = 0
        self.trials = 0
        self.pricing_rounds = 0
        self.unsolved = Counter[str]()
        self.compressed = 0
        self._last = perf_counter()

    def lap(self, stage: str) -> None:
        """Adds the time since the last call to a stage."""
        now = perf_counter()
        self.stage_seconds[stage] = self.stage_seconds.get(stage, 0.0) + now - self._last
        self._last = now
