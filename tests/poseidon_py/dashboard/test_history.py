"""What is remembered of rounds and totals is bounded, and what of it is shown is right."""

from types import SimpleNamespace
from typing import Any

from poseidon_py.dashboard.history import COARSE, EVICTIONS, FINE_SAMPLES, ROUNDS, SERIES, RoundHistory, Series
from poseidon_py.preempt.decisions import Decisions, MigratingPod, VictimPod
from protos.gen import flow_pb2


def stats(number):
    return flow_pb2.RoundStats(started_us=number * 1_000_000, seconds=number / 1000, placed=number, gap=number % 3)


def test_the_last_thousand_rounds_are_remembered_by_number():
    history = RoundHistory()
    for number in range(1, ROUNDS + 51):
        history.round_ended(stats(number), 0.5)
    assert history.count == ROUNDS + 50
    assert [each.number for each in history.newest(3)] == [1050, 1049, 1048]
    assert [each.stats.placed for each in history.newest(2, before=60)] == [59, 58]
    assert history.newest(5, before=51) == []
    assert len(history.newest(10_000)) == ROUNDS
    shown = history.newest(1)[0].json()
    assert (shown["number"], shown["placed"], shown["seconds"], shown["call_seconds"]) == (1050, 1050, 1.05, 0.5)


def test_evictions_say_for_whom():
    def pod(name, node="") -> Any:
        return SimpleNamespace(full_name=f"d/{name}", node=node)

    history = RoundHistory()
    history.round_ended(stats(7), 0.1)
    for number in range(EVICTIONS + 5):
        history.decided(Decisions(victims=[VictimPod(pod(f"v{number}", "n1"), pod("urgent"))]))
    history.decided(Decisions(migrations=[MigratingPod(pod("m", "n1"), "n2", "d/large")]))
    newest, before, *others = history.evictions()
    assert (newest.pod, newest.how, newest.needed_by, newest.target) == ("d/m", "moved", "d/large", "n2")
    assert (before.pod, before.how, before.needed_by, before.at) == (
        f"d/v{EVICTIONS + 4}",
        "preempted",
        "d/urgent",
        7.0,
    )
    assert len(others) == EVICTIONS - 2


def test_series_have_an_hour_of_samples_and_means_of_five_minutes():
    series = Series()
    for number in range(FINE_SAMPLES + COARSE):
        values = {"use/cpu": number / 10} | ({"pods/pending": 4.0} if number % 2 else {})
        series.add(10.0 * number, values)
    fine = series.json(fine=True)
    assert len(fine["times"]) == FINE_SAMPLES
    assert (fine["times"][0], fine["times"][-1]) == (10.0 * COARSE, 10.0 * (FINE_SAMPLES + COARSE - 1))
    assert fine["values"]["pods/pending"][:2] == [None, 4.0]
    coarse = series.json(fine=False, prefix="use/")
    assert list(coarse["values"]) == ["use/cpu"]
    assert len(coarse["times"]) == (FINE_SAMPLES + COARSE) // COARSE
    assert abs(coarse["values"]["use/cpu"][0] - sum(range(COARSE)) / COARSE / 10) < 1e-9
    series.add(1e6, {f"q{number}": 1.0 for number in range(SERIES + 3)})
    assert series.left_out == 3
