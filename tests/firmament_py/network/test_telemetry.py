"""Telemetry of a round."""

from firmament_py.network import telemetry
from firmament_py.network.telemetry import Telemetry


def test_laps_of_a_stage_add_up_to_the_total_time(monkeypatch):
    clock = iter([10.0, 11.0, 13.0, 16.5])
    monkeypatch.setattr(telemetry, "perf_counter", lambda: next(clock))
    found = Telemetry()
    for stage in ("build", "solve", "build"):
        found.lap(stage)
    assert found.stage_seconds == {"build": 4.5, "solve": 2.0}
    assert (found.solves, found.trials, found.pricing_rounds) == (0, 0, 0)
