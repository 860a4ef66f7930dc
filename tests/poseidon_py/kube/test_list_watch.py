"""List, LISTED mark, watch, relist: by script, and compared with a model with gaps anywhere."""

import asyncio
import json
import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.client import (
    ApiError,
    BusyError,
    GoneError,
    LostAnswerError,
    QuietError,
    UnreachableError,
)
from poseidon_py.kube.list_watch import Kind, Watch
from poseidon_py.kube.objects import Metadata, Pod
from poseidon_py.state.handlers import PodHandler
from poseidon_py.state.store import Store
from poseidon_py.state.watch_set import BUDGETS, NODES, PODS
from tests.effort import examples
from tests.poseidon_py.builders import pod_json
from tests.poseidon_py.kube.watch_script import A, B, C, Item, Script, bookmark, line, page, play


async def test_lists_in_pages_then_marks_then_watches_from_the_lists_version():
    script, log, _, watch = await play(("page", page(A, token="x")), ("page", page(B, version="12")), page_size=1)
    assert log == [("observe", "a"), ("observe", "b"), ("listed", ["uid-a", "uid-b"])]
    assert watch.listed.is_set()
    assert [asked.get("continue") for _, asked in script.asked] == [None, "x", None]
    assert not any("fieldSelector" in asked for _, asked in script.asked), "pods that have ended are watched, too"
    kind, asked = script.asked[-1]
    assert (kind, asked["resourceVersion"], asked["allowWatchBookmarks"]) == ("watch", "12", "true")
    assert asked["timeoutSeconds"] == "450"  # 300 * (1 + 0.5)


async def test_events_arrive_in_order_however_the_stream_is_cut():
    stream = line("ADDED", A) + line("MODIFIED", B) + line("DELETED", A)
    pieces = [stream[i : i + 7] for i in range(0, len(stream), 7)]
    _, log, _, _ = await play(("page", page()), ("watch", pieces))
    assert log[1:] == [("observe", "a"), ("observe", "b"), ("removed", "a")]


async def test_a_deleted_object_is_removed_even_if_it_is_invalid():
    bad = pod_json("a", version=12)
    bad["spec"]["priority"] = "high"
    _, log, _, _ = await play(("page", page(A)), ("watch", [line("DELETED", bad)]))
    assert log[-1] == ("removed", "a")


async def test_a_watch_that_ends_resumes_at_the_last_version_without_delay():
    script, log, slept, _ = await play(("page", page()), ("watch", [line("ADDED", C)]), ("watch", [bookmark("30")]))
    assert [asked["resourceVersion"] for kind, asked in script.asked if kind == "watch"] == ["10", "7", "30"]
    assert slept == []
    assert len(log) == 2


@pytest.mark.parametrize("error", [LostAnswerError("reset"), UnreachableError("refused"), BusyError(500, "", "")])
async def test_an_error_is_retried_with_growing_delays_and_without_listing_again(error):
    script, log, slept, _ = await play(
        ("page", page(A)), ("watch", error), ("watch", error), ("watch", [bookmark("11"), error])
    )
    assert slept == [0.375, 0.75, 0.375]  # 0.5 s doubled, times 0.75; small again after a byte was heard
    assert [kind for kind, _ in script.asked] == ["page", "watch", "watch", "watch", "watch"]
    assert log.count(("listed", ["uid-a"])) == 1


@pytest.mark.parametrize(
    "gone",
    [
        pytest.param(GoneError(410, "Expired", "too old"), id="as the answer"),
        pytest.param(
            [line("ERROR", {"kind": "Status", "status": "Failure", "code": 410, "reason": "Expired"})],
            id="in the stream",
        ),
        pytest.param([line("ADDED", B) + line("ERROR", {"kind": "Status", "code": 410})], id="bare, after an event"),
    ],
)
async def test_410_means_list_again(gone):
    script, log, _, _ = await play(("page", page(A)), ("watch", gone), ("page", page(C, version="40")))
    assert log[-2:] == [("observe", "c"), ("listed", ["uid-c"])]
    assert script.asked[-1][1]["resourceVersion"] == "40"


async def test_a_server_that_always_answers_410_is_queried_with_delays():
    _, _, slept, _ = await play(*[("page", page()), ("watch", GoneError(410, "", ""))] * 4)
    assert len(slept) == 3
    assert slept == sorted(slept)


async def test_after_an_outage_the_list_does_not_wait():
    """A server that has been started anew has no history: it answers 410 to the first watch that reaches it."""
    refused = [("watch", UnreachableError("refused"))] * 8
    script, log, slept, _ = await play(
        ("page", page(A)), *refused, ("watch", GoneError(410, "", "")), ("page", page(B, version="40"))
    )
    assert slept == [0.375, 0.75, 1.5, 3.0, 3.75, 3.75, 3.75, 3.75]  # at most 5 s, times 0.75; none after the answer
    assert log[-1] == ("listed", ["uid-b"])
    assert script.asked[-1][1]["resourceVersion"] == "40"


async def test_the_first_error_that_a_server_answers_after_an_outage_has_a_short_delay():
    """It may be a 403, until it has loaded its roles."""
    refused = [("watch", UnreachableError("refused"))] * 8
    _, _, slept, _ = await play(("page", page(A)), *refused, *[("watch", ApiError(403, "Forbidden", "no"))] * 7)
    assert slept[8:] == [0.375, 0.75, 1.5, 3.0, 6.0, 12.0, 22.5]  # at most 30 s, times 0.75


async def test_each_kind_of_error_is_a_warning_once_until_a_watch_brings_something(caplog):
    caplog.set_level(logging.DEBUG)
    refused, denied, busy = UnreachableError("refused"), ApiError(403, "", "no"), BusyError(500, "", "")
    errors = (refused, denied, refused, busy, denied, busy, refused)
    await play(("page", page(A)), *[("watch", error) for error in errors], ("watch", [bookmark("11"), refused]))
    levels = [record.levelname for record in caplog.records if "broke" in record.message]
    assert levels == ["WARNING", "WARNING", "DEBUG", "WARNING", "DEBUG", "DEBUG", "DEBUG", "WARNING"]


async def test_a_list_that_expires_half_way_starts_again():
    _, log, _, _ = await play(("page", page(A, token="x")), ("page", GoneError(410, "Expired", "")), ("page", page(B)))
    assert log[-2:] == [("observe", "b"), ("listed", ["uid-b"])]


async def test_silence_has_a_limit():
    script, _, _, _ = await play(("page", page()), ("watch", [bookmark("11")]), silence=42.0)
    assert script.silence == 42.0


async def test_an_invalid_object_is_named_and_hides_no_other():
    bad = pod_json("bad", version=8)
    bad["spec"]["priority"] = "high"
    _, log, _, _ = await play(
        ("page", page(A, bad, B)), ("watch", [line("ADDED", C) + line("MODIFIED", bad) + line("DELETED", A)])
    )
    assert [entry[:2] for entry in log] == [
        ("invalid", "bad"),
        ("observe", "a"),
        ("observe", "b"),
        ("listed", ["uid-a", "uid-b", "uid-bad"]),
        ("observe", "c"),
        ("invalid", "bad"),
        ("removed", "a"),
    ]
    assert "priority" in next(entry[2] for entry in log if entry[0] == "invalid")


async def test_a_server_that_ends_watches_at_once_is_queried_with_delays():
    _, _, slept, _ = await play(("page", page()), ("watch", []), ("watch", []), ("watch", []))
    assert slept == [0.375, 0.75, 1.5]


# -- against a model: a server with a history, gaps anywhere, and a store that must end up knowing what is there -----


class Server:
    """A small API server: a log of changes from which watches are served, and compaction."""

    def __init__(self) -> None:
        self.version = 1
        self.pods: dict[str, dict] = {}
        self.log: list[tuple[int, bytes]] = []
        self.compacted = 0

    def change(self, name: str, what: str) -> None:
        self.version += 1
        old = self.pods.get(name)
        if what == "delete":
            if old is not None:
                del self.pods[name]
                gone = json.loads(json.dumps(old))
                gone["metadata"]["resourceVersion"] = str(self.version)
                self.log.append((self.version, line("DELETED", gone)))
            return
        uid = old["metadata"]["uid"] if old and what != "recreate" else f"{name}-{self.version}"
        if old and what == "recreate":
            self.change(name, "delete")
            self.version += 1
        node = (old or {"spec": {}})["spec"].get("nodeName", "") if what == "touch" else "n" if what == "bind" else ""
        self.pods[name] = pod_json(name, uid=uid, node=node, version=self.version)
        self.log.append((self.version, line("MODIFIED" if old else "ADDED", self.pods[name])))

    def since(self, version: int) -> list[bytes]:
        if version < self.compacted:
            raise GoneError(410, "Expired", "")
        return [text for at, text in self.log if at > version]


STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["add", "bind", "touch", "delete", "recreate"]), st.sampled_from("abc")),
        st.tuples(st.sampled_from(["deliver", "break", "compact"]), st.just("")),
    ),
    max_size=30,
)


@pytest.mark.slow
@given(STEPS)
@examples(60)
def test_after_any_gaps_the_store_has_exactly_the_existing_objects(steps):
    server, store = Server(), Store(["poseidon"])

    class Source:
        """Serves each stream the changes so far, then breaks it; every round of the test serves one stream."""

        async def page(self, path, parameters):
            return page(*server.pods.values(), version=str(server.version))

        async def watch(self, path, parameters, silence):
            for text in server.since(int(parameters["resourceVersion"])):
                yield text
            idle.set()
            go.clear()
            await go.wait()
            raise LostAnswerError("broken")

    async def run():
        async def sleep(seconds):
            pass

        watch = asyncio.create_task(Watch(Source(), PODS, PodHandler(store), sleep=sleep).run())
        await idle.wait()
        for what, name in [*steps, ("deliver", "")]:
            if what == "compact":
                server.compacted = server.version
            elif what in ("deliver", "break"):
                idle.clear()
                go.set()
                await idle.wait()
            else:
                server.change(name, what)
        watch.cancel()
        await asyncio.gather(watch, return_exceptions=True)

    idle, go = asyncio.Event(), asyncio.Event()
    asyncio.run(run())
    known = {(p.name, p.uid, p.node) for p in store.pods.values()}
    assert known == {
        (p["metadata"]["name"], p["metadata"]["uid"], p["spec"].get("nodeName", "")) for p in server.pods.values()
    }
    # every pod that went is in the queue, or was never known; none is both here and gone
    assert not set(store.gone_tasks) & set(store.pods)


def test_invalid_pods_are_dropped_when_they_are_deleted():
    store = Store(["poseidon"])
    handler = PodHandler(store)
    for uid in ("seen going", "gone unseen", "there"):
        handler.invalid(Metadata(name=uid, namespace="ns", uid=uid), "spec: is odd")
    handler.removed(Pod(metadata=Metadata(name="seen going", namespace="ns", uid="seen going")))
    handler.listed({"there"})
    assert list(store.problems.invalid) == ["there"]


async def test_a_forbidden_list_is_retried_and_the_remedy_is_named(caplog):
    await play(("page", ApiError(403, "Forbidden", "no")), ("page", BusyError(503, "", "")), ("page", page(A)))
    denied, busy = (r.getMessage() for r in caplog.records if "broke" in r.getMessage())
    assert denied.endswith("allow list and watch in the ClusterRole (docs/rbac.md)")
    assert "allow" not in busy


@pytest.mark.parametrize("code", [403, 404])
async def test_an_optional_kind_that_cannot_be_read_counts_as_listed_and_is_tried_again(code, caplog):
    script, seen = Script(*[("page", ApiError(code, "No", "no"))] * 3, ("page", page(A))), []
    script.path = BUDGETS.path
    watch: Watch[Any] = Watch(script, BUDGETS, Item(), sleep=lambda seconds: when_asleep(), rng=lambda: 0.5)

    async def when_asleep():
        seen.append(watch.listed.is_set())

    running = asyncio.create_task(watch.run())
    await script.played.wait()
    running.cancel()
    assert seen == [True] * 3
    assert caplog.text.count("cannot watch poddisruptionbudgets") == 1
    assert ("docs/rbac.md" in caplog.text) is (code == 403)
    assert watch._version == "10"


async def test_a_required_kind_that_cannot_be_read_is_not_listed():
    _, _, slept, watch = await play(("page", ApiError(403, "Forbidden", "no")))
    assert slept
    assert not watch.listed.is_set()


def test_selectors_are_parameters_of_requests():
    kind = Kind("pods", "/api/v1/pods", Pod, "status.phase=Failed", labels="app")
    assert kind.selectors == {"fieldSelector": "status.phase=Failed", "labelSelector": "app"}
    assert NODES.selectors == {}


async def test_a_quiet_watch_is_no_fault_of_anybody(caplog):
    """A whole day in which nothing changes: no line above debug, no delay, and each restart is counted as quiet."""
    quiet = QuietError("nothing came for 150 s")
    with caplog.at_level(logging.DEBUG):
        watches = [("watch", [bookmark(str(11 + at)), quiet]) for at in range(576)]
        _, _, slept, watch = await play(("page", page(A)), *watches)
    assert slept == []
    spoken = [each.getMessage() for each in caplog.records if each.levelno > logging.DEBUG]
    assert spoken == ["listed 1 pods at version 10"]  # at the start
    counted = watch._metrics.registry.get_sample_value
    assert counted("poseidon_watch_restarts_total", {"kind": "pods", "reason": "quiet"}) == 576
    assert counted("poseidon_watch_restarts_total", {"kind": "pods", "reason": "error"}) is None
