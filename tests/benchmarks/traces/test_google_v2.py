"""Traces in the Google layout: the life of a task, machines, constraints, and errors with file, line and field."""

import gzip
from pathlib import Path

import pytest

from benchmarks.traces import files
from benchmarks.traces.form import FOREVER, MachineEvent, Shape, TraceBuilder, TraceError
from benchmarks.traces.generate import generate, preset
from benchmarks.traces.presets import CPU_UNIT, MEMORY_UNIT
from firmament_py.model.constraints import Operator, Requirement

SAMPLE = Path(__file__).parent / "data" / "google-v2"


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
            [(0, SUBMIT), (1, SCHEDULE), (100, EVICT)], [(0, FOREVER)], id="evicted: it continues after the end"
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
