"""Traces survive their files, and an error in a file is reported with its place."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from benchmarks.traces import files, google_v2, texts
from benchmarks.traces.form import FOREVER, HOUR, MachineEvent, Shape, TraceBuilder, TraceError
from benchmarks.traces.generate import generate, preset
from benchmarks.traces.presets import CPU_UNIT, MEMORY_UNIT, PRESETS
from firmament_py.model.constraints import Operator, Requirement
from tests.benchmarks.traces.made import BOUNDS, ONE_VALUE, PRESENCE, content, small, traces

SAMPLE = Path(__file__).parent / "data" / "google-v2"


# -- round trips ----------------------------------------------------------------------------------------------


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


# -- the sample in the Google layout --------------------------------------------------------------------------


def test_the_sample_in_the_tree_is_what_the_generator_writes(tmp_path):
    trace = generate(preset("google2011"), 20, 4, seed=1)
    files.write(trace, tmp_path / "g", "google-v2", compress=True)
    for table in sorted(p.relative_to(tmp_path / "g") for p in (tmp_path / "g").glob("*/*")):
        assert gzip.decompress((SAMPLE / table).read_bytes()) == gzip.decompress((tmp_path / "g" / table).read_bytes())


def test_the_sample_is_read():
    trace, notes = files.read(SAMPLE)
    assert notes == []
    assert len(trace.machines) == 20
    assert (trace.task_duration_us == FOREVER).any()
    assert (trace.task_duration_us > 0).any()
    assert {m.labels["platform"] for m in trace.machines} == {"B", "C"}


# -- what happens to a task in the Google layout ---------------------------------------------------------------


def google(tmp_path, tasks, machines="0,7,0,X,0.5,0.25\n", **tables):
    for name, text in {"task_events": tasks, "machine_events": machines, **tables}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "part-0.csv").write_text(text)
    return files.read(tmp_path)


def event(us, kind, index=0, cpu="0.5", memory="0.25", priority="9"):
    return f"{us},,1,{index},7,{kind},u,0,{priority},{cpu},{memory},0.001,0\n"


SUBMIT, SCHEDULE, EVICT, FAIL, FINISH, KILL, LOST, UPDATE_PENDING = range(8)


@pytest.mark.parametrize(
    ("events", "tasks"),
    [
        pytest.param([(5, SUBMIT), (7, SCHEDULE), (20, FINISH)], [(5, 13)], id="runs from schedule to finish"),
        pytest.param([(5, SUBMIT), (7, SCHEDULE), (20, KILL)], [(5, 13)], id="killed"),
        pytest.param([(5, SUBMIT), (7, SCHEDULE), (20, LOST)], [(5, 13)], id="lost"),
        pytest.param([(0, SUBMIT), (0, SCHEDULE)], [(0, FOREVER)], id="still runs at the end"),
        pytest.param(
            [(5, SUBMIT), (7, SCHEDULE), (9, EVICT), (9, SUBMIT), (30, SCHEDULE), (40, FINISH)],
            [(5, 10)],
            id="evicted: what counts is the last run",
        ),
        pytest.param(
            [(0, SUBMIT), (1, SCHEDULE), (100, EVICT), (100, SUBMIT), (150, KILL)], [(0, 99)], id="evicted, then killed"
        ),
        pytest.param(
            [(0, SUBMIT), (1, SCHEDULE), (100, EVICT), (110, SCHEDULE), (115, EVICT), (120, EVICT), (150, LOST)],
            [(0, 5)],
            id="evicted twice, then lost",
        ),
        pytest.param(
            [(0, SUBMIT), (1, SCHEDULE), (100, EVICT)], [(0, FOREVER)], id="evicted: it goes on after the end"
        ),
        pytest.param(
            [(5, SUBMIT), (7, SCHEDULE), (9, FAIL), (11, SUBMIT), (12, SCHEDULE), (20, FINISH)],
            [(5, 2), (11, 8)],
            id="failed and submitted again: two tasks",
        ),
        pytest.param([(7, SCHEDULE), (9, FINISH)], [(7, 2)], id="the submission is missing"),
        pytest.param([(7, SUBMIT), (8, SCHEDULE), (8, FINISH)], [(7, 1)], id="no time at all is a microsecond"),
    ],
)
def test_the_life_of_a_task(tmp_path, events, tasks):
    trace, _ = google(tmp_path, "".join(event(*e) for e in events))
    assert list(zip(trace.task_us.tolist(), trace.task_duration_us.tolist(), strict=True)) == tasks
    assert trace.shapes[0].requests == (("cpu", CPU_UNIT // 2), ("memory", MEMORY_UNIT // 4))
    assert trace.shapes[0].priority == 9


def test_tasks_that_never_ran_are_left_out_and_reported(tmp_path):
    other = event(1, SUBMIT, 1) + event(2, SCHEDULE, 1)
    trace, notes = google(tmp_path, event(1, SUBMIT) + event(4, KILL) + event(5, FINISH, 2) + other)
    assert len(trace.task_us) == 1
    assert notes == ["left out: 1 events of tasks that were not submitted", "left out: 1 tasks that never ran"]


def test_missing_requests_come_from_the_usage(tmp_path):
    usage = "0,9,1,0,7,0.25,0.125\n9,18,1,0,7,0.125,0.25,0.3,,,\n"
    lines = event(1, SUBMIT, cpu="", memory="") + event(2, SCHEDULE)
    trace, _ = google(tmp_path, lines, task_usage=usage)
    assert trace.shapes[0].requests == (("cpu", CPU_UNIT // 4), ("memory", MEMORY_UNIT // 4))


def test_lines_may_end_early_and_pending_updates_count(tmp_path):
    lines = "1,,1,0,,0\n" + event(2, UPDATE_PENDING, cpu="1") + "3,,1,0,7,1\n"
    trace, _ = google(tmp_path, lines)
    assert dict(trace.shapes[int(trace.task_shape[0])].requests)["cpu"] == CPU_UNIT


def test_constraints_and_attributes(tmp_path):
    constraints = "1,1,0,0,zone,a\n1,1,0,1,rack,\n1,1,0,2,kernel,5\n1,1,0,3,disks,2\n1,1,0,0,gone,\n1,1,0,0,zone,a\n"
    attributes = "0,7,zone,a,0\n0,7,rack,r,0\n5,7,rack,,1\n"
    trace, _ = google(
        tmp_path, event(1, SUBMIT) + event(2, SCHEDULE), task_constraints=constraints, machine_attributes=attributes
    )
    assert trace.shapes[0].selector == (
        Requirement("zone", Operator.IN, ("a",)),
        Requirement("rack", Operator.EXISTS),
        Requirement("kernel", Operator.LT, ("5",)),
        Requirement("disks", Operator.GT, ("2",)),
        Requirement("gone", Operator.DOES_NOT_EXIST),
    )
    assert trace.machines[0].labels == {"platform": "X", "zone": "a"}


def test_constraints_are_those_of_their_time(tmp_path):
    constraints = "".join(f"{us},1,{index},0,zone,{zone}\n" for us, index, zone in
                          ((1, 0, "a"), (5, 0, "b"), (5, 1, "b"), (1, 1, "a"), (9, 2, "late")))  # fmt: skip
    lines = (
        event(1, SUBMIT)
        + event(1, SUBMIT, 1)
        + event(2, SUBMIT, 2)
        + event(5, UPDATE_PENDING, 1)
        + "".join(event(6, SCHEDULE, index) for index in range(3))
        + event(7, FINISH)
        + event(8, SUBMIT)
        + event(9, SCHEDULE)
    )
    trace, _ = google(tmp_path, lines, task_constraints=constraints)
    zones = {
        trace.task_name(i): [r.values for r in trace.shapes[shape].selector]
        for i, shape in enumerate(trace.task_shape.tolist())
    }
    assert zones == {"1/0": [("a",)], "1/1": [("b",)], "1/2": [], "1/1000000": [("b",)]}


def test_machines_are_added_updated_and_removed(tmp_path):
    machines = "0,7,0,X,0.5,0.5\n3,7,2,X,,0.25\n5,7,1\n6,7,0,X,1,1\n7,8,1\n9223372036854775807,7,1\n"
    trace, notes = google(tmp_path, event(1, SUBMIT) + event(2, SCHEDULE), machines)
    assert trace.event_kind.tolist() == [MachineEvent.ADD, MachineEvent.UPDATE, MachineEvent.REMOVE, MachineEvent.ADD]
    cpu = trace.resources.index("cpu")
    assert trace.event_allocatable[:, cpu].tolist() == [CPU_UNIT // 2, CPU_UNIT // 2, 0, CPU_UNIT]
    assert notes == ["left out: 1 removals of machines that are not present"]


def test_usage_and_constraints_after_the_end_do_not_count(tmp_path):
    lines = event(1, SUBMIT, cpu="", memory="") + event(2, SCHEDULE)
    usage, constraints = "0,9,1,0,7,0.25,0.125\n9,18,1,0,7,1,1\n9,18,x\n", "1,1,0,0,zone,a\n9,1,x\n"
    google(tmp_path, lines)
    for table, text in (("task_usage", usage), ("task_constraints", constraints)):
        (tmp_path / table).mkdir()
        (tmp_path / table / "part-0.csv").write_text(text)
    trace, _ = files.read(tmp_path, end_us=9)
    assert trace.shapes[0].requests == (("cpu", CPU_UNIT // 4), ("memory", MEMORY_UNIT // 8))
    assert trace.shapes[0].selector == (Requirement("zone", Operator.IN, ("a",)),)


def test_only_the_first_hours_are_read(tmp_path):
    lines = event(1, SUBMIT) + event(2, SCHEDULE) + event(2, SUBMIT, 1) + event(3, SCHEDULE, 1) + event(50, FINISH)
    google(tmp_path, lines)
    for table in ("task_events", "machine_events", "machine_attributes", "task_constraints", "task_usage"):
        (tmp_path / table).mkdir(exist_ok=True)
        (tmp_path / table / "part-1.csv").write_text("60,only the time counts\n")
        (tmp_path / table / "part-2.csv").write_text("60,,1,2,7,0\nnot read any more\n")
    trace, _ = files.read(tmp_path, end_us=3)
    assert trace.task_duration_us.tolist() == [FOREVER]


@pytest.mark.parametrize(
    ("tasks", "machines", "message"),
    [
        pytest.param("x,,1,0,7,0\n", None, r"task_events.part-0\.csv, line 1: time is 'x'", id="time"),
        pytest.param(event(1, 0) + ",,1,0,7,0\n", None, "line 2: time is missing", id="no time"),
        pytest.param("-1,,1,0,7,0\n", None, "line 1: time is -1", id="before 0"),
        pytest.param("1,,,0,7,0\n", None, "line 1: job ID is missing", id="job"),
        pytest.param("1,,1,a,7,0\n", None, "line 1: task index is 'a', not a whole number", id="index"),
        pytest.param("1,,1,0,7,9\n", None, "line 1: event type is 9", id="event"),
        pytest.param(event(1, 0, cpu="much"), None, "line 1: CPU request is 'much', not a number", id="cpu"),
        pytest.param(event(1, 0, memory="-1"), None, "line 1: memory request is -1", id="memory"),
        pytest.param(event(1, 0, memory="nan"), None, "line 1: memory request is nan", id="nan"),
        pytest.param(
            event(1, 0, cpu="1e300"), None, r"line 1: CPU request is 1e300; give a number from 0 to 1\.4", id="too much"
        ),
        pytest.param(event(1, 0, memory="inf"), None, "line 1: memory request is inf", id="infinite"),
        pytest.param(event(1, 0, priority=str(2**31)), None, "line 1: priority is 2147483648; give", id="priority"),
        pytest.param(event(1, 0, index=2**63), None, "line 1: task index is 9223372036854775808; give", id="large"),
        pytest.param(event(1, 0, index=-1), None, "line 1: task index is -1; give", id="negative index"),
        pytest.param(event(2**63 - 2, 0), None, "line 1: time is 9223372036854775806; give at most", id="too late"),
        pytest.param(event(1, 0), "0,7,0,X,1,1e300\n", "line 1: Memory is 1e300; give", id="large machine"),
        pytest.param(
            event(1, 0), "0,7,5,X,1,1\n", r"machine_events.part-0\.csv, line 1: event type is 5", id="machine"
        ),
        pytest.param(event(1, 0), "0,,0,X,1,1\n", "line 1: machine ID is missing", id="machine id"),
    ],
)
def test_an_error_names_file_line_and_field(tmp_path, tasks, machines, message):
    with pytest.raises(TraceError, match=message):
        google(tmp_path, tasks, machines or "0,7,0,X,0.5,0.25\n")


def test_a_broken_archive_is_reported(tmp_path):
    google(tmp_path, event(1, SUBMIT) + event(2, SCHEDULE))
    (tmp_path / "task_events" / "part-1.csv.gz").write_bytes(b"no gzip")
    with pytest.raises(TraceError, match=r"cannot read .*part-1\.csv\.gz"):
        files.read(tmp_path)


@pytest.mark.parametrize("name", ["task_events/part-1.csv.gz", "t.json.gz"])
def test_a_corrupt_archive_is_reported(tmp_path, name):
    google(tmp_path, event(1, SUBMIT) + event(2, SCHEDULE))
    whole = gzip.compress(bytes(range(256)) * 9)
    (tmp_path / name).write_bytes(whole[:10] + bytes(b ^ 0xFF for b in whole[10:20]) + whole[20:])
    with pytest.raises(TraceError, match=f"cannot read .*{Path(name).name}: Error -3"):
        files.read(tmp_path / name if name.startswith("t.") else tmp_path)


def test_the_google_layout_rejects_what_it_cannot_represent(tmp_path):
    with pytest.raises(TraceError, match=r"cannot represent nvidia.com/gpu; use --format json"):
        files.write(generate(preset("philly"), 20, 12), tmp_path / "p", "google-v2")
    builder = TraceBuilder("t")
    builder.event(0, builder.machine("m"), MachineEvent.ADD, {"cpu": 1})
    either = Requirement("zone", Operator.IN, ("a", "b"))
    builder.task(0, builder.job("j"), 5, builder.shape(Shape.of({"cpu": 1}, 0, (either,))))
    with pytest.raises(TraceError, match="cannot represent zone In"):
        files.write(builder.build(), tmp_path / "q", "google-v2")


def test_what_the_google_layout_drops_is_reported(tmp_path):
    builder = TraceBuilder("t")
    builder.event(0, builder.machine("m"), MachineEvent.ADD, {"cpu": 1})
    shape, job = builder.shape(Shape.of({"cpu": 1})), builder.job("j", 2, {"data-bytes": "1"})
    for _ in range(2):
        builder.task(0, job, 5, shape)
    notes = files.write(builder.build(), tmp_path / "p", "google-v2")
    assert notes[:2] == ["not kept: gang minima of jobs", "not kept: labels of jobs"]


# -- our own formats -------------------------------------------------------------------------------------------

DOCUMENT: dict[str, Any] = {
    "format": "poseidon-trace",
    "version": 1,
    "machines": [{"name": "m", "count": 2, "allocatable": {"cpu": "4", "memory": "8Gi"}, "removed_s": 60}],
    "jobs": [
        {
            "name": "j",
            "submit_s": 1.5,
            "gang_minimum": 2,
            "tasks": [
                {
                    "count": 3,
                    "duration_s": 10,
                    "requests": {"cpu": "500m", "memory": 1024},
                    "selector": [{"key": "zone", "operator": "In", "values": ["a"]}],
                }
            ],
        }
    ],
}


def test_a_json_trace_written_by_hand(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(DOCUMENT))
    trace, _ = files.read(tmp_path / "t.json")
    assert [m.name for m in trace.machines] == ["m-00000", "m-00001"]
    assert trace.event_us.tolist() == [0, 0, 60_000_000, 60_000_000]
    assert trace.capacity.tolist() == [8000, 16 * 2**30]
    assert trace.task_us.tolist() == [1_500_000] * 3
    assert trace.shapes[0].requests == (("cpu", 500), ("memory", 1024))
    assert trace.jobs[0].gang_minimum == 2


def test_a_task_may_request_nothing(tmp_path):
    (tmp_path / "t.json").write_text(json.dumps(changed((*TASK, "requests"), None)))
    trace, _ = files.read(tmp_path / "t.json")
    assert trace.shapes[0].requests == ()


def changed(path, value):
    """DOCUMENT with another value at a path; None: the field is left out."""
    copy = json.loads(json.dumps(DOCUMENT))
    at = copy
    for part in path[:-1]:
        at = at[part]
    if value is None:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return copy


JOB, TASK, MACHINE = ("jobs", 0), ("jobs", 0, "tasks", 0), ("machines", 0)


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param([], "the document is not an object", id="list"),
        pytest.param(changed(("format",), "x"), "format is 'x'", id="format"),
        pytest.param(changed(("version",), 2), "version is 2; this reads version 1", id="version"),
        pytest.param(changed((*MACHINE, "nmae"), "x"), r"machines\[0\].nmae is not a known field", id="typo"),
        pytest.param(
            changed((*MACHINE, "allocatable", "cpu"), "lots"), r"machines\[0\].allocatable.cpu", id="quantity"
        ),
        pytest.param(changed((*MACHINE, "allocatable"), None), r"machines\[0\].allocatable or events", id="nothing"),
        pytest.param(changed((*MACHINE, "added_s"), -1), r"machines\[0\].added_s", id="before 0"),
        pytest.param(changed((*MACHINE, "added_s"), 60.5), "is removed or updated while it is not present", id="order"),
        pytest.param(changed((*JOB, "name"), None), r"jobs\[0\].name is missing", id="name"),
        pytest.param(changed((*JOB, "gang_minimum"), 9), "job j has a gang_minimum of 9 but 3 tasks", id="gang"),
        pytest.param(changed((*TASK, "count"), 0), r"jobs\[0\].tasks\[0\].count is 0", id="count"),
        pytest.param(changed((*TASK, "count"), 10**15), r"tasks\[0\].count is 10{15}; give .* 10000000$", id="many"),
        pytest.param(changed((*TASK, "priority"), 2**63), r"tasks\[0\].priority is 9223372036854775808", id="priority"),
        pytest.param(changed((*TASK, "priority"), -(2**31) - 1), r"priority is -2147483649; give", id="low priority"),
        pytest.param(changed((*TASK, "first_index"), 10**20), r"tasks\[0\].first_index is 10{20}; give", id="index"),
        pytest.param(changed((*JOB, "gang_minimum"), -1), r"jobs\[0\].gang_minimum is -1; give", id="minus"),
        pytest.param(changed((*TASK, "requests", "memory"), 1e300), r"requests.memory : .* is too large", id="much"),
        pytest.param(changed((*TASK, "duration_s"), 0), r"tasks\[0\].duration_s is 0", id="duration"),
        pytest.param(changed((*TASK, "duration_s"), "long"), "not a number of seconds", id="text"),
        pytest.param(changed((*TASK, "requests", "cpu"), -1), r"requests.cpu", id="negative"),
        pytest.param(changed((*TASK, "selector", 0, "operator"), "Is"), r"selector\[0\].operator", id="operator"),
        pytest.param(changed((*TASK, "selector", 0, "values"), []), "In needs at least one value", id="values"),
        pytest.param(changed((*TASK, "selector", 0, "values"), 5), "is not a list of strings", id="no list"),
        pytest.param(
            changed(("jobs",), [DOCUMENT["jobs"][0], {"name": "j", "gang_minimum": 3}]),
            r"jobs\[1\].name defines a second job 'j'",
            id="a second job",
        ),
        pytest.param(
            changed(("machines",), [DOCUMENT["machines"][0], {"name": "m-00001", "added_s": 70, "allocatable": {}}]),
            r"machines\[1\].name defines a second machine 'm-00001'",
            id="a second machine",
        ),
        pytest.param(
            changed(MACHINE, {"name": "m", "added_s": 5, "events": []}),
            r"machines\[0\].added_s cannot be combined with events",
            id="events and a time",
        ),
        pytest.param(changed(("jobs",), []), "0 tasks; a trace needs both", id="no jobs"),
    ],
)
def test_an_error_in_json_names_the_field(tmp_path, document, message):
    (tmp_path / "t.json").write_text(json.dumps(document))
    with pytest.raises(TraceError, match=message):
        files.read(tmp_path / "t.json")


def test_json_with_a_duplicate_field(tmp_path):
    text = json.dumps(DOCUMENT).replace('"gang_minimum": 2', '"gang_minimum": 2, "gang_minimum": 3')
    (tmp_path / "t.json").write_text(text)
    with pytest.raises(TraceError, match=r"t\.json: field 'gang_minimum' appears twice in one object"):
        files.read(tmp_path / "t.json")


def tables(tmp_path, tasks, machines="machine,cpu,memory\nm,4,8Gi\n"):
    (tmp_path / "machines.csv").write_text(machines)
    (tmp_path / "tasks.csv").write_text(tasks)
    return files.read(tmp_path)[0]


def test_a_csv_trace_written_by_hand(tmp_path):
    trace = tables(
        tmp_path,
        "submit_s,job,cpu,example.com/gpu,duration_s,selector,gang_minimum,labels\n"
        "1,j,500m,,5,zone In a|b;disk Exists,2,data-bytes=7\n2,j,1,2,,,,\n",
        "time_s,machine,event,cpu,labels\n0,m,add,4,zone=a;disk=ssd%3B\n9,m,remove,,\n",
    )
    assert trace.machines[0].labels == {"zone": "a", "disk": "ssd;"}
    assert trace.task_duration_us.tolist() == [5_000_000, FOREVER]
    assert trace.shapes[0].selector == (
        Requirement("zone", Operator.IN, ("a", "b")),
        Requirement("disk", Operator.EXISTS),
    )
    assert dict(trace.shapes[1].requests) == {"cpu": 1000, "example.com/gpu": 2}
    assert (trace.jobs[0].gang_minimum, trace.jobs[0].labels) == (2, {"data-bytes": "7"})


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        pytest.param("", r"tasks\.csv is empty", id="empty"),
        pytest.param("submit_s,cpu\n1,1\n", "line 1: the required column job is missing", id="no column"),
        pytest.param("job,submit_s,cpus\nj,1,1\n", "line 1: column 'cpus' is neither", id="unknown column"),
        pytest.param("job,submit_s\n,1\n", "line 2: job is missing", id="no job"),
        pytest.param("job,submit_s\nj,soon\n", "line 2: submit_s is 'soon'", id="time"),
        pytest.param("job,submit_s,cpu\nj,1,x\n", "line 2: cpu : 'x' is not a quantity", id="quantity"),
        pytest.param("job,submit_s,priority\nj,1,x\n", "line 2: priority is 'x', not a whole number", id="priority"),
        pytest.param(f"job,submit_s,priority\nj,1,{2**63}\n", "line 2: priority is 9223372036854775808", id="high"),
        pytest.param(f"job,submit_s,task\nj,1,{'9' * 20}\n", "line 2: task is 9{20}; give a whole number", id="index"),
        pytest.param(f"job,submit_s,gang_minimum\nj,1,{2**63}\n", "line 2: gang_minimum is 922", id="minimum"),
        pytest.param("job,submit_s,cpu\nj,1,1e300\n", "line 2: cpu : '1e300' is too large; give at most", id="much"),
        pytest.param("job,submit_s,selector\nj,1,zone\n", "line 2: selector : 'zone' is not", id="selector"),
        pytest.param(
            "job,submit_s,labels\nj,1,zone\n", "line 2: labels : 'zone' is not of the form key=value", id="labels"
        ),
        pytest.param("job,submit_s,labels\nj,1,a=1;a=2\n", "line 2: labels : 'a' appears twice", id="a label twice"),
        pytest.param("job,submit_s,task\nj,1,0\nj,2,0\n", "task j/0 appears twice", id="twice"),
        pytest.param(
            "job,submit_s,gang_minimum\nj,1,2\nj,1,\nj,1,3\n",
            r"tasks\.csv, line 4: gang_minimum of job j is 3 here but 2 earlier",
            id="another minimum",
        ),
        pytest.param("job,submit_s,gang_minimum\nj,1,\nj,1,1\n", "line 3: gang_minimum of job j", id="a late minimum"),
        pytest.param("job,submit_s,gang_minimum\nj,1,-1\n", "line 2: gang_minimum of job j is -1", id="minus"),
        pytest.param(
            "job,submit_s,labels\nj,1,a=1\nj,1,a=1\nj,1,a=2\n",
            "line 4: labels of job j is {'a': '2'} here but {'a': '1'} earlier",
            id="other labels",
        ),
        pytest.param("job,submit_s\nj,1\nj,1,5\n", "line 3: field 3 is '5', but the header has 2", id="too many"),
        pytest.param("job,submit_s,cpu,cpu\nj,1,1,2\n", "line 1: column 'cpu' appears twice", id="a column twice"),
        pytest.param("job,submit_s,duration_s\nj,1,0\n", "line 2: duration_s is 0", id="no duration"),
        pytest.param("job,submit_s,duration_s\nj,1,-5\n", "line 2: duration_s is '-5'", id="duration"),
    ],
)
def test_an_error_in_csv_names_line_and_field(tmp_path, tasks, message):
    with pytest.raises(TraceError, match=message):
        tables(tmp_path, tasks)


def test_machines_in_csv_keep_their_labels(tmp_path):
    head = "machine,time_s,event,labels,cpu\nm,0,add,zone=a,4\nm,1,remove,,\n"
    assert tables(tmp_path, "job,submit_s\nj,1\n", head + "m,2,add,zone=a,4\n").machines[0].labels == {"zone": "a"}
    with pytest.raises(TraceError, match=r"machines\.csv, line 4: labels of machine m is {'zone': 'b'}"):
        tables(tmp_path, "job,submit_s\nj,1\n", head + "m,2,add,zone=b,4\n")


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
