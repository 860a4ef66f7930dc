import asyncio

import msgspec
import pytest

from benchmarks.demo import progress as module
from benchmarks.demo.progress import Progress
from poseidon_py.kube.client import GoneError, KubeError

UNSCHEDULABLE = {"conditions": [{"type": "PodScheduled", "status": "False"}]}


def event(
    what="ADDED",
    uid="u1",
    node=None,
    phase="Pending",
    scheduler="mine",
    annotations=None,
    version="",
    deleting=None,
    **status,
):
    return msgspec.json.encode(
        {
            "type": what,
            "object": {
                "metadata": {
                    "uid": uid,
                    "labels": {"kind": "web"},
                    "annotations": annotations or {},
                    "resourceVersion": version,
                    "deletionTimestamp": deleting,
                },
                "spec": {"nodeName": node, "schedulerName": scheduler},
                "status": {"phase": phase, **status},
            },
        }
    )


def follow(*events, is_finite=lambda _: False):
    """A progress that has seen events one second apart, from second 0."""
    progress = Progress(None, "mine", "kind", is_finite)  # type: ignore[arg-type]  # no server: events come from here
    for second, raw in enumerate(events):
        progress._take(msgspec.json.decode(raw, type=module._Event), float(second))
    return progress


def test_bind_time_is_from_creation_to_bind():
    progress = follow(
        event(), event(uid="u2"), event("MODIFIED", node="n"), event("MODIFIED", node="n", phase="Running")
    )
    assert progress.bind_seconds() == [2.0]
    assert progress.bound == 1
    assert progress.counts() == {"web": {"submitted": 2, "bound": 1, "waiting": 1, "ended": 0}}
    assert progress.changed_at == 3.0


def test_pods_of_other_schedulers_and_bookmarks_are_ignored():
    progress = follow(event(scheduler="other"), event("BOOKMARK"))
    assert progress.pods == {}


def test_settled_means_bound_or_marked_unschedulable():
    unschedulable = event("MODIFIED", uid="u2", **UNSCHEDULABLE)
    assert not follow(event(node="n"), event(uid="u2")).settled(2)
    assert follow(event(node="n"), event(uid="u2"), unschedulable).settled(2)
    assert not follow(event(node="n"), event(uid="u2"), unschedulable).settled(3)


def test_finite_pods_must_have_ended():
    finite = {"annotations": {"run": "3"}}
    running = (event(**finite), event("MODIFIED", node="n", phase="Running", **finite))
    done = event("MODIFIED", node="n", phase="Succeeded", **finite)
    assert not follow(*running, is_finite=lambda a: "run" in a).settled(1)
    assert follow(*running, done, is_finite=lambda a: "run" in a).settled(1)
    assert follow(*running).settled(1)


def test_tried_means_that_the_scheduler_has_answered_for_each():
    unschedulable = event("MODIFIED", uid="u2", **UNSCHEDULABLE)
    finite = follow(event(node="n"), event(uid="u2"), unschedulable, is_finite=lambda _: True)
    assert finite.tried(2)
    assert not finite.settled(2)
    assert not finite.tried(3)
    assert not follow(event()).tried(1)


def test_whether_a_pod_of_a_kind_waits():
    assert not follow(event()).waits("web")
    marked = follow(event(), event("MODIFIED", **UNSCHEDULABLE))
    assert marked.waits("web")
    assert not marked.waits("batch")
    assert not follow(event("MODIFIED", **UNSCHEDULABLE), event("MODIFIED", node="n", **UNSCHEDULABLE)).waits("web")


def test_deleted_pods_are_no_longer_counted_and_need_not_end():
    gone = (event(node="n"), event("DELETED", node="n"), event(uid="u2", node="n", phase="Succeeded"))
    progress = follow(*gone, event("DELETED", uid="u2", phase="Succeeded"), is_finite=lambda _: True)
    assert progress.settled(1)
    assert progress.counts() == {"web": {"submitted": 1, "bound": 1, "waiting": 0, "ended": 1}}


def test_changes_are_passed_on_in_order():
    seen: list[tuple[str, str]] = []
    progress = Progress(None, "mine", observe=lambda what, pod: seen.append((what, pod.metadata.uid)))  # type: ignore[arg-type]
    for raw in (event(), event(scheduler="other"), event("BOOKMARK"), event("DELETED")):
        progress._take(msgspec.json.decode(raw, type=module._Event), 0.0)
    assert seen == [("ADDED", "u1"), ("DELETED", "u1")]


def test_a_pod_that_is_being_deleted_is_not_settled():
    """Its successor is still to come. One that has ended and is kept by a finalizer, likewise."""
    deleting = {"deleting": "2026-01-01T00:00:00Z"}
    assert not follow(event(node="n"), event("MODIFIED", node="n", **deleting)).settled(1)
    assert not follow(event(node="n", phase="Succeeded"), event("MODIFIED", node="n", **deleting)).settled(1)
    assert follow(event(node="n"), event("MODIFIED", node="n", **deleting), event("DELETED", node="n")).settled(0)


def test_pods_that_are_replaced_count_once():
    """A line said `1015 of 1000 pods`: 15 had been preempted and recreated."""
    progress = follow(event(node="n"), event("DELETED", node="n"), event(uid="u2"))
    assert progress.present == 1
    assert not progress.tried(2)


def test_the_newest_version_is_that_of_any_pod():
    """The scheduler sees all pods as well, and its version is compared with this one."""
    assert follow(event(version="9"), event(scheduler="other", version="12"), event(version="10")).version == 12


class Server:
    """Answers each watch with the next of `answers`: lines, or an error to raise; then hangs."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.asked = []
        self.exhausted = asyncio.Event()

    async def watch(self, path, parameters, silence):
        self.asked.append(parameters["resourceVersion"])
        if not self.answers:
            self.exhausted.set()
            await asyncio.Event().wait()
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        half = len(answer) // 2
        yield answer[:half]
        yield answer[half:]


@pytest.mark.parametrize(
    ("answer", "then"),
    [
        pytest.param(event() + b"\n" + event("MODIFIED", version="7") + b"\n", "7", id="ended"),
        pytest.param(KubeError("broke"), "3", id="broken"),
        pytest.param(GoneError(410, "Expired", "too old"), "0", id="gone"),
        pytest.param(
            b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","code":410}}\n', "0", id="error event"
        ),
    ],
)
async def test_a_watch_that_ends_is_resumed(monkeypatch, answer, then):
    monkeypatch.setattr(module, "_RETRY_SECONDS", 0.0)
    server = Server(event(version="3") + b"\n", answer)
    progress = Progress(server, "mine")  # type: ignore[arg-type]  # all that it needs of a client
    following = asyncio.create_task(progress.run())
    await server.exhausted.wait()
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert server.asked == ["0", "3", then]
    assert len(progress.pods) == 1
