"""Traces survive their files, and paths that are not traces are rejected."""

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.traces import files, google_v2, texts
from benchmarks.traces.form import HOUR, TraceError
from benchmarks.traces.generate import generate, preset
from benchmarks.traces.presets import PRESETS
from tests.benchmarks.traces.made import BOUNDS, ONE_VALUE, PRESENCE, content, small, traces


@given(trace=traces(), compressed=st.booleans())
def test_a_trace_survives_json(tmp_path_factory, trace, compressed):
    path = tmp_path_factory.mktemp("t") / ("t.json.gz" if compressed else "t.json")
    assert files.write(trace, path, "json") == []
    read, notes = files.read(path)
    assert notes == []
    assert read.name == trace.name
    assert content(read) == content(trace)


@given(trace=traces())
def test_a_trace_survives_csv(tmp_path_factory, trace):
    path = tmp_path_factory.mktemp("t") / "folder"
    assert files.write(trace, path, "csv") == []
    read, notes = files.read(path)
    assert notes == []
    assert content(read) == content(trace)


@given(trace=traces(("cpu", "memory"), ONE_VALUE | BOUNDS | PRESENCE, plain=True), compressed=st.booleans())
def test_a_trace_survives_the_google_layout_but_for_names(tmp_path_factory, trace, compressed):
    path = tmp_path_factory.mktemp("t") / "folder"
    google_v2.write(trace, path, compress=compressed)
    read, notes = files.read(path)
    assert notes == []
    # numbers of jobs follow the order in which they end there, so the tasks are compared without them
    events, tasks = content(trace, names=False)
    read_events, read_tasks = content(read, names=False)
    assert sorted(e[0::2] for e in read_events) == sorted(e[0::2] for e in events)
    assert sorted(repr(t[1:]) for t in read_tasks) == sorted(repr(t[1:]) for t in tasks)
    assert {j.name for j in read.jobs} == {str(i + 1) for i in range(len(trace.jobs))}


@pytest.mark.parametrize("name", PRESETS)
def test_presets_survive_our_formats(tmp_path, name):
    trace = generate(preset(name), 10, 1, seed=3, labels=True)
    for form, path in (("json", tmp_path / "t.json"), ("csv", tmp_path / "t")):
        files.write(trace, path, form)
        assert content(files.read(path)[0]) == content(trace)


@given(trace=traces(), end_us=st.integers(1, 10**13), form=st.sampled_from(("json", "csv")))
def test_a_cut_trace_survives(tmp_path_factory, trace, end_us, form):
    folder = tmp_path_factory.mktemp("t")
    whole, path = folder / "whole.json", folder / ("t.json" if form == "json" else "t")
    files.write(trace, whole, "json")
    left, _ = trace.until(end_us)
    assume(left.machines and len(left.task_us))
    cut, _ = files.read(whole, end_us)
    files.write(cut, path, form)
    again, notes = files.read(path)
    assert notes == []
    assert content(again) == content(cut)


def test_nothing_is_read_or_written_without_tasks(tmp_path):
    trace = small([("late", 100, 5, 1, 0)])
    files.write(trace, tmp_path / "t.json", "json")
    with pytest.raises(
        TraceError, match=r"t\.json, in its first 0\.001 hours, holds 1 machines and 0 tasks; .* more h"
    ):
        files.read(tmp_path / "t.json", HOUR // 1000)
    with pytest.raises(TraceError, match="0 tasks; make it longer"):
        files.write(trace.until(1)[0], tmp_path / "u.json", "json")
    assert not (tmp_path / "u.json").exists()


def test_the_same_trace_gives_the_same_bytes(tmp_path):
    for i in range(2):
        files.write(generate(preset("google2011"), 10, 1), tmp_path / f"{i}.json.gz", "json")
    assert (tmp_path / "0.json.gz").read_bytes() == (tmp_path / "1.json.gz").read_bytes()


@given(us=st.integers(0, 10**15))
def test_seconds_keep_microseconds(us):
    assert texts.microseconds(float(repr(texts.seconds(us)))) == us


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("nix", None, "does not exist", id="nothing there"),
        pytest.param("t.txt", "x", "is not a trace", id="another file"),
        pytest.param("t.json", "{", "is not JSON", id="broken"),
        pytest.param("t.json", "[" * 10**5, "is not JSON", id="deep"),
    ],
)
def test_a_path_without_a_trace_is_rejected(tmp_path, name, text, message):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(TraceError, match=message):
        files.read(tmp_path / name)


def test_a_folder_that_is_not_empty_is_not_overwritten(tmp_path):
    (tmp_path / "precious").write_text("x")
    with pytest.raises(TraceError, match="exists; csv needs"):
        files.write(generate(preset("google2011"), 5, 1), tmp_path, "csv")
