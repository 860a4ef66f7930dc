"""Traces in our JSON and CSV formats, written by hand, and errors with their place."""

import json
from typing import Any

import pytest

from benchmarks.traces import files
from benchmarks.traces.form import FOREVER, TraceError
from firmament_py.model.constraints import Operator, Requirement

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
