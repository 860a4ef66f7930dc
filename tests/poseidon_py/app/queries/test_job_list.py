"""The JSON of /jobs, and what `poseidon jobs` and `poseidon queues NAME` print of it."""

import io

import pytest
from rich.console import Console

from poseidon_py.app.queries.job_list import UnknownJob, jobs_json, queue_statistics
from poseidon_py.cli.job_list import age, print_jobs, statistics_lines
from poseidon_py.cli.queues import print_queues
from tests.poseidon_py.tracking.histories import START, Life, Watched

T = START


async def why(uid):
    if uid == "uid-gone":
        return None
    return {"problem": "", "message": f"no node for {uid}", "state": "waits for a node"}


def watched():
    """j: one pod ran for 60 s and failed, one runs since 20 s, one waits; p has succeeded; q is of another user."""
    found = Watched(now=T)
    found.queues = {"uid-j-0": "batch", "uid-p": "batch"}
    running = Life("j-1", owner="uid-j", created=T + 5).bind(T + 6).start(T + 80)
    pods = [
        Life("j-0", owner="uid-j").bind(T + 2).start(T + 10).fail(T + 70, 3),
        running,
        Life("j-2", owner="uid-j", created=T + 7),
        Life("p", created=T + 1).start(T + 2).succeed(T + 3),
        Life("q", created=T + 2, annotations={"poseidon.io/user": "anna"}),
    ]
    found.tell(*pods)
    found.now = T + 100
    return found


def names(body):
    return [job["name"].removeprefix("default/") for job in body["jobs"]]


@pytest.mark.parametrize(
    ("selection", "expected"),
    [
        ({}, ["j", "p", "q"]),
        ({"namespace": "default"}, ["j", "p", "q"]),
        ({"namespace": "other"}, []),
        ({"user": "anna"}, ["q"]),
        ({"queue": "batch"}, ["j", "p"]),
        ({"state": "succeeded"}, ["p"]),
        ({"state": "Running", "user": "anna"}, []),
        ({"name": "p"}, ["p"]),
        ({"name": "default/p"}, ["p"]),
        ({"name": "p", "namespace": "default"}, ["p"]),
    ],
)
async def test_which_jobs_are_listed(selection, expected):
    assert names(await jobs_json(watched().tracker, T + 100, why, **selection)) == expected


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pp", "job pp not found; did you mean p?"),
        ("other/p", "job p not found; `poseidon jobs` lists all"),
        ("xyz", "job xyz not found; `poseidon jobs` lists all"),
    ],
)
async def test_an_unknown_job_is_told_from_those_that_are_near(name, message):
    with pytest.raises(UnknownJob) as raised:
        await jobs_json(watched().tracker, T, why, name=name)
    assert str(raised.value) == message


async def test_a_job_in_detail():
    body = await jobs_json(watched().tracker, T + 100, why, name="j")
    (job,) = body["jobs"]
    assert (job["state"], job["kind"], job["user"], job["queue"]) == ("Running", "Job", "default", "batch")
    assert job["pods"] == {"Pending": 1, "Running": 1, "Failed": 1}
    assert (job["created"], job["age_seconds"], job["ended"]) == ("2026-01-01T00:00:00Z", 100, None)
    assert [(task["name"], task["state"]) for task in job["tasks"]] == [("main", "Running")]
    figures = job["statistics"]
    assert figures["run_seconds"] == 60 + 20, "that of the pod that runs counts until now"
    assert figures["resource_seconds"] == {"cpu": 68.0 + 94.0}, "from the node on: 2 to 70 s, and 6 to 100 s"
    assert job["waiting"] == [{"pod": "default/j-2", "why": "no node for uid-j-2"}]
    assert job["more"] == 0
    failed = job["replicas"][0]
    assert (failed["name"], failed["state"], failed["reason"], failed["exit_code"]) == ("j-0", "Failed", "Error", 3)
    assert failed["ended"] == "2026-01-01T00:01:10Z"
    assert failed["requests"] == {"cpu": 1.0}
    assert (await jobs_json(watched().tracker, T + 100, why, name="j"))["jobs"] == [job], "asking changes nothing"


async def test_at_most_a_thousand_pods_and_twenty_reasons_are_shown(monkeypatch):
    monkeypatch.setattr("poseidon_py.app.queries.job_list.REPLICAS_SHOWN", 3)
    monkeypatch.setattr("poseidon_py.app.queries.job_list.WAITING_SHOWN", 2)
    found = Watched()
    found.tell(*(Life(f"j-{number}", owner="uid-j", created=T + 9 - number) for number in range(5)))
    (job,) = (await jobs_json(found.tracker, T, why, name="j"))["jobs"]
    assert ([each["name"] for each in job["replicas"]], job["more_replicas"]) == (["j-0", "j-1", "j-2"], 2)
    assert [each["pod"] for each in job["waiting"]] == ["default/j-4", "default/j-3"], "the oldest"
    assert job["more"] == 3


async def test_a_queue_that_is_known_later_than_the_pod_is_shown():
    """After a restart a pod may run for long without a change."""
    found = Watched(Life("p").start(T + 1), now=T + 5)
    assert names(await jobs_json(found.tracker, T + 9, why, queue="batch")) == []
    found.queues["uid-p"] = "batch"
    assert names(await jobs_json(found.tracker, T + 9, why, queue="batch")) == ["p"]


async def test_of_many_jobs_the_newest_are_shown(monkeypatch):
    monkeypatch.setattr("poseidon_py.app.queries.job_list.JOBS_SHOWN", 2)
    body = await jobs_json(watched().tracker, T + 100, why)
    assert (names(body), body["more"]) == (["p", "q"], 1)
    assert (await jobs_json(watched().tracker, T + 100, why, user="anna"))["more"] == 0


async def test_a_pod_that_is_gone_meanwhile_has_no_reason():
    found = Watched()
    found.tell(Life("gone"))
    (job,) = (await jobs_json(found.tracker, T, why, name="gone"))["jobs"]
    assert job["waiting"] == []


def test_the_statistics_of_a_queue_and_its_users():
    body = queue_statistics(watched().tracker, {"batch"})
    assert body["since"] == "2026-01-01T00:00:00Z"
    assert list(body["users"]) == ["default"]
    assert (body["statistics"]["succeeded"], body["statistics"]["failed"]) == (1, 1)
    assert queue_statistics(watched().tracker, {"other"})["statistics"]["created"] == 0


# -- printed ----------------------------------------------------------------------------------------------------------


def printed(print_body, body, width=140):
    out = io.StringIO()
    print_body(body, Console(file=out, width=width))
    return out.getvalue()


async def test_the_table():
    shown = printed(print_jobs, (await jobs_json(watched().tracker, T + 100, why))["jobs"])
    line = next(line for line in shown.splitlines() if "default/j " in line)
    assert [cell.strip() for cell in line.strip("│").split("│")] == [
        "default/j", "Job", "Running", "1 Pending, 1 Running, 1 Failed", "100s", "default", "batch",
    ]  # fmt: skip
    assert shown.splitlines()[-1] == "1 Pending, 1 Running, 1 Succeeded"
    assert printed(print_jobs, []) == "no jobs\n"


async def test_one_job():
    shown = printed(print_jobs, (await jobs_json(watched().tracker, T + 100, why, name="j"))["jobs"])
    for line in (
        "default/j: Job, Running since 2026-01-01T00:00:10Z, created 2026-01-01T00:00:00Z",
        "user default, queue batch; pods: 1 Pending, 1 Running, 1 Failed",
        "run time 80 s; resource-seconds: cpu 162",
        "  default/j-2: no node for uid-j-2",
    ):
        assert line in shown.splitlines()
    assert "Error, exit code 3" in shown


def test_a_queue_with_its_users():
    statistics = queue_statistics(watched().tracker, {"batch"})
    queue = {
        "name": "batch", "type": "Queue", "depth": 0, "state": "open", "why": "", "running": 1, "pending": 0,
        "nominated": 0, "share": 0.0, "resources": [], "local_queues": [], "problems": [], "waiting": [], "more": 0,
        **statistics,
    }  # fmt: skip
    shown = printed(print_queues, {"why": "", "how": "", "problems": {}, "queues": [queue]})
    assert "batch: pods since 2026-01-01T00:00:00Z: 3 created, 1 succeeded, 1 failed" in shown.splitlines()
    assert "  user default: 3 created, 1 succeeded, 1 failed" in shown.splitlines()


def test_what_is_lost_is_shown_if_something_is():
    found = Watched()
    pod = Life("p").start(T + 10)
    found.tell(pod)
    found.gone(pod.delete(T + 30, "EvictionByEvictionAPI"), T + 40)
    (figures,) = queue_statistics(found.tracker, {""})["users"].values()
    assert statistics_lines(figures)[-1] == "evicted 1, seconds lost by evictions 30"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (119, "119s"), (120, "2m"), (7199, "119m"), (7200, "2h"), (172800, "2d")]
)
def test_ages(seconds, text):
    assert age(seconds) == text
