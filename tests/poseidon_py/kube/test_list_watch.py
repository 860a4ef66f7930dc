"""List, LISTED mark, watch, relist: by script, and against a model with gaps anywhere."""

import asyncio
import json
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
    TooLargeError,
    UnreachableError,
)
from poseidon_py.kube.lines import Lines
from poseidon_py.kube.list_watch import PODS, Watch, WatchOptions
from poseidon_py.kube.objects import Metadata, Pod
from poseidon_py.state.handlers import PodHandler
from poseidon_py.state.store import Store
from tests.effort import examples
from tests.poseidon_py.builders import pod_json
from tests.poseidon_py.kube.mutations import cut, mutated


class Item:
    """A handler that records its calls."""

    def __init__(self) -> None:
        self.log: list[Any] = []

    def observe(self, item):
        self.log.append(("observe", item.metadata.name))

    def removed(self, item):
        self.log.append(("removed", item.metadata.name))

    def listed(self, uids):
        self.log.append(("listed", sorted(uids)))

    def invalid(self, metadata, problem):
        self.log.append(("invalid", metadata.name, problem))


class Script:
    """An API server that plays scenes in order; the last one should hang forever.

    A scene is (request: "page" or "watch", answer: bytes, pieces, or an error to raise).
    """

    def __init__(self, *scenes) -> None:
        self.scenes = list(scenes)
        self.asked: list[Any] = []
        self.played = asyncio.Event()

    def _next(self, kind, parameters):
        self.asked.append((kind, dict(parameters)))
        if not self.scenes:
            self.played.set()
            return None
        expected, answer = self.scenes.pop(0)
        assert kind == expected
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def page(self, path, parameters):
        assert path == "/api/v1/pods"
        answer = self._next("page", parameters)
        if answer is None:
            await asyncio.Event().wait()
        return answer

    async def watch(self, path, parameters, silence):
        self.silence = silence
        answer = self._next("watch", parameters)
        if answer is None:
            await asyncio.Event().wait()
        for piece in answer:
            if isinstance(piece, Exception):
                raise piece
            yield piece


def page(*pods, version="10", token=""):
    return json.dumps({"metadata": {"resourceVersion": version, "continue": token}, "items": list(pods)}).encode()


def line(kind, obj):
    return json.dumps({"type": kind, "object": obj}).encode() + b"\n"


def bookmark(version):
    return line("BOOKMARK", {"kind": "Pod", "metadata": {"resourceVersion": version}})


async def play(*scenes, now=lambda: 0.0, **fields):
    script, handler, slept = Script(*scenes), Item(), []

    async def sleep(seconds):
        slept.append(seconds)

    watch = Watch(script, PODS, handler, WatchOptions(**fields), sleep=sleep, monotonic=now, rng=lambda: 0.5)
    running = asyncio.create_task(watch.run())
    finished = asyncio.create_task(script.played.wait())
    await asyncio.wait({running, finished}, timeout=5, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        running.result()
    assert script.played.is_set()
    for task in (running, finished):
        task.cancel()
    await asyncio.gather(running, finished, return_exceptions=True)
    return script, handler.log, slept, watch


A, B, C = (pod_json(name, version=version) for name, version in (("a", 5), ("b", 6), ("c", 7)))


async def test_lists_in_pages_then_marks_then_watches_from_the_lists_version():
    script, log, _, watch = await play(("page", page(A, token="x")), ("page", page(B, version="12")), page_size=1)
    assert log == [("observe", "a"), ("observe", "b"), ("listed", ["uid-a", "uid-b"])]
    assert watch.listed.is_set()
    assert [asked.get("continue") for _, asked in script.asked] == [None, "x", None]
    selector = "status.phase!=Succeeded,status.phase!=Failed"
    assert all(asked["fieldSelector"] == selector for _, asked in script.asked)
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
        ("listed", ["uid-a", "uid-b"]),
        ("observe", "c"),
        ("invalid", "bad"),
        ("removed", "a"),
    ]
    assert "priority" in next(entry[2] for entry in log if entry[0] == "invalid")


async def test_a_server_that_ends_watches_at_once_is_queried_with_delays():
    _, _, slept, _ = await play(("page", page()), ("watch", []), ("watch", []), ("watch", []))
    assert slept == [0.375, 0.75, 1.5]


# -- what cannot be decoded ---------------------------------------------------------------------------------------

DEEP = b"[" * 5000 + b"]" * 5000


def malformed(name: str, version: int) -> list[Any]:
    """Objects that no decoder accepts, as bytes."""
    good = json.dumps(pod_json(name, version=version)).encode()
    return [
        pytest.param(good.replace(b'"Pending"', b'"\xff"'), id="not UTF-8"),
        pytest.param(good.replace(b'"Pending"', b"5"), id="another type"),
        pytest.param(good[:-1] + b', "unknown": ' + DEEP + b"}", id="nested too deeply"),
        pytest.param(good[:-1] + b', "spec": {"affinity": ' + DEEP + b"}}", id="nested too deeply where it matters"),
    ]


def raw_line(kind: bytes, obj: bytes) -> bytes:
    return b'{"type":"%b","object":%b}\n' % (kind, obj)


@pytest.mark.parametrize("bad", malformed("bad", 8))
async def test_an_object_that_cannot_be_decoded_affects_no_other(bad):
    listed = page(A, B).replace(b'"items": [', b'"items": [' + bad + b", ")
    lines = line("ADDED", C) + raw_line(b"MODIFIED", bad) + line("DELETED", A) + raw_line(b"DELETED", bad)
    script, log, slept, _ = await play(("page", listed), ("watch", [lines, raw_line(b"MODIFIED", bad)]))
    assert [entry[:2] for entry in log] == [
        ("invalid", "bad"),
        ("observe", "a"),
        ("observe", "b"),
        ("listed", ["uid-a", "uid-b"]),
        ("observe", "c"),
        ("invalid", "bad"),
        ("removed", "a"),
        ("removed", "bad"),
        ("invalid", "bad"),
    ]
    assert slept == []
    assert [kind for kind, _ in script.asked] == ["page", "watch", "watch"]
    assert script.asked[-1][1]["resourceVersion"] == "8"  # the same line does not come again


async def test_the_version_of_an_undecodable_bookmark_is_used():
    odd = raw_line(b"BOOKMARK", b'{"metadata": {"resourceVersion": "31"}, "x": ' + DEEP + b"}")
    script, log, _, _ = await play(("page", page()), ("watch", [odd]))
    assert script.asked[-1][1]["resourceVersion"] == "31"
    assert log == [("listed", [])]


def within(clock, seconds, *pieces):
    """A watch that ends after some seconds."""
    yield from pieces
    clock[0] += seconds


NO_EVENTS = [
    b"<html>\n",
    b"\n\xff\xfe\n",
    b'{"type":"ADDED"}\n',
    b'{"type":"RESET","object":{}}\n',
    b'{"type":"ADDED","object":{"status":{"phase":"\\ud800"}}}\n',
    b"[" * 100_000 + b"\n",
]


@pytest.mark.parametrize(
    "odd", NO_EVENTS, ids=["HTML", "bytes", "no object", "unknown type", "half a character", "brackets"]
)
async def test_a_line_that_is_not_an_event_hides_no_other_and_causes_a_list(odd, caplog):
    clock = [1000.0]
    lines = line("ADDED", A) + odd + odd + line("ADDED", B)
    script, log, slept, _ = await play(
        ("page", page()),
        ("watch", within(clock, 59, lines, odd, line("ADDED", C))),
        ("watch", within(clock, 1, bookmark("12"))),
        ("page", page(A, version="20")),
        now=lambda: clock[0],
    )
    assert log == [
        ("listed", []),
        ("observe", "a"),
        ("observe", "b"),
        ("observe", "c"),
        ("observe", "a"),
        ("listed", ["uid-a"]),
    ]
    assert slept == []
    assert script.asked[-1][1]["resourceVersion"] == "20"
    assert [r.getMessage() for r in caplog.records if "dropping an event" in r.getMessage()] != []
    assert sum("dropping an event" in r.getMessage() for r in caplog.records) == 1


async def test_a_line_that_is_too_long_is_left_out(monkeypatch):
    monkeypatch.setattr("poseidon_py.kube.list_watch.Lines", lambda: Lines(4096))
    long = line("ADDED", pod_json("long", version=6, annotations={"x": "y" * 10_000}))
    stream = line("ADDED", A) + long + line("ADDED", C)
    _, log, _, _ = await play(("page", page()), ("watch", [stream[i : i + 100] for i in range(0, len(stream), 100)]))
    assert log == [("listed", []), ("observe", "a"), ("observe", "c")]


async def test_a_server_with_wrong_answers_to_watches_is_queried_with_delays():
    _, _, slept, _ = await play(("page", page()), *[("watch", [b"<html>\n"])] * 4)
    assert slept == [0.375, 0.75, 1.5, 3.0]


async def test_a_server_that_repeats_an_event_and_ends_is_queried_with_delays():
    _, _, slept, _ = await play(("page", page()), *[("watch", [bookmark("11")])] * 4)
    assert slept == [0.375, 0.75, 1.5]


@pytest.mark.parametrize("status", [b'"gone"', b"5", b"{}", b'{"code": "410"}', DEEP])
async def test_an_error_that_cannot_be_decoded_means_list_again(status):
    script, log, _, _ = await play(("page", page(A)), ("watch", [raw_line(b"ERROR", status)]), ("page", page(C)))
    assert [kind for kind, _ in script.asked] == ["page", "watch", "page", "watch"]
    assert log[-1] == ("listed", ["uid-c"])


async def test_a_version_that_the_server_rejects_means_list_again():
    bad = ApiError(400, "BadRequest", "invalid resource version")
    script, _, slept, _ = await play(("page", page()), ("watch", bad), ("page", page(version="12")))
    assert script.asked[-1][1]["resourceVersion"] == "12"
    assert slept == [0.375]


@pytest.mark.parametrize(
    "body", [b"<html>", b"", b"[]", b'{"items": 5}', b"\xff", DEEP, b'{"metadata":{},"items":' + DEEP]
)
async def test_a_list_that_cannot_be_decoded_is_requested_again_with_growing_delays(body, caplog):
    _, log, slept, _ = await play(("page", body), ("page", body), ("page", page(A)))
    assert slept == [0.375, 0.75]
    assert log == [("observe", "a"), ("listed", ["uid-a"])]
    assert "the list of pods: " in caplog.text


# -- what does not end --------------------------------------------------------------------------------------------


async def test_pages_that_repeat_a_token_are_not_followed():
    script, log, slept, _ = await play(
        ("page", page(A, token="x")), ("page", page(B, token="y")), ("page", page(C, token="x")), ("page", page(A))
    )
    assert [asked.get("continue") for _, asked in script.asked] == [None, "x", "y", None, None]
    assert slept == [0, 0, 0.375]
    assert log[-1] == ("listed", ["uid-a"])


async def test_pages_without_new_objects_are_not_followed_forever():
    pages = [("page", page(A, token=f"token-{number}")) for number in range(21)]
    script, log, slept, _ = await play(*pages, ("page", page(B)))
    assert slept[-1] == 0.375
    assert script.asked[21] == ("page", {k: v for k, v in script.asked[0][1].items() if k != "continue"})
    assert log[-1] == ("listed", ["uid-b"])


async def test_empty_pages_in_between_are_followed():
    pages = [("page", page(token=f"token-{number}")) for number in range(10)]
    _, log, _, _ = await play(("page", page(A, token="x")), *pages, ("page", page(B)))
    assert log[-1] == ("listed", ["uid-a", "uid-b"])


async def test_a_page_that_is_too_large_is_requested_in_smaller_pages():
    large = TooLargeError("more than a byte")
    script, log, slept, _ = await play(
        ("page", large), ("page", large), ("page", large), ("page", page(A)), page_size=40
    )
    assert [asked["limit"] for kind, asked in script.asked if kind == "page"] == ["40", "10", "2", "1"]
    assert slept == [0.375, 0.75, 1.5]
    assert log[-1] == ("listed", ["uid-a"])


async def test_a_watch_without_events_is_restarted_without_a_warning(caplog):
    clock = [0.0]

    def quiet():
        clock[0] += 150
        yield QuietError("nothing came for 150 s")

    script, log, slept, _ = await play(
        ("page", page()), ("watch", quiet()), ("watch", quiet()), ("watch", [line("ADDED", C)]), now=lambda: clock[0]
    )
    assert [asked["resourceVersion"] for kind, asked in script.asked if kind == "watch"] == ["10", "10", "10", "7"]
    assert slept == []
    assert log[-1] == ("observe", "c")
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


async def test_a_watch_without_events_that_ends_in_time_is_restarted_at_once(caplog):
    clock = [0.0]
    _, _, slept, _ = await play(
        ("page", page()), *[("watch", within(clock, 300)) for _ in range(3)], now=lambda: clock[0]
    )
    assert slept == []
    assert not [record for record in caplog.records if record.levelname == "WARNING"]


STREAM = [line("ADDED", A), line("MODIFIED", B), line("DELETED", A), bookmark("30")]
TOKENS = [
    b"\n",
    b"{",
    b"}",
    b'"',
    b"\\",
    b"\xff",
    b"[" * 2000,
    b"]",
    b"null",
    b'"ERROR"',
    b'"\\ud800"',
    b"9" * 400,
    b"-0",
    b"1e999",
]


class OneStream:
    """Serves the same list each time, some pieces to the first watch, and never answers the second."""

    def __init__(self, pieces) -> None:
        self.pieces = iter(pieces)
        self.lists = 0
        self.watches = 0
        self.hangs = asyncio.Event()

    async def page(self, path, parameters):
        self.lists += 1
        return page(C, version="40")

    async def watch(self, path, parameters, silence):
        self.watches += 1
        if self.watches == 2:
            self.hangs.set()
            await asyncio.Event().wait()
        for piece in self.pieces:
            if isinstance(piece, Exception):
                raise piece
            yield piece


@pytest.mark.slow
@given(cut(mutated(STREAM, TOKENS)), st.sampled_from([None, QuietError("quiet"), LostAnswerError("reset")]))
def test_any_output_of_a_broken_server_is_read_once_and_the_watch_continues(pieces, end):
    async def run():
        source, slept = OneStream([*pieces, *([end] if end is not None else [])]), []

        async def sleep(seconds):
            slept.append(seconds)

        store = Store(["poseidon"])
        watching = asyncio.create_task(Watch(source, PODS, PodHandler(store), sleep=sleep).run())
        hanging = asyncio.create_task(source.hangs.wait())
        await asyncio.wait({watching, hanging}, timeout=5, return_when=asyncio.FIRST_COMPLETED)
        assert not watching.done()
        assert source.watches == 2
        assert source.lists <= 2
        assert len(slept) <= 1
        for task in (watching, hanging):
            task.cancel()
        await asyncio.gather(watching, hanging, return_exceptions=True)

    asyncio.run(run())


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
    handler.listed({"there"})  # those that could not be read in one list count as there until the next
    assert list(store.invalid) == ["there"]


async def test_a_forbidden_list_is_retried_and_the_remedy_is_named(caplog):
    await play(("page", ApiError(403, "Forbidden", "no")), ("page", BusyError(503, "", "")), ("page", page(A)))
    denied, busy = (r.getMessage() for r in caplog.records if "broke" in r.getMessage())
    assert denied.endswith("allow list and watch in the ClusterRole (deploy/poseidon.yaml)")
    assert "allow" not in busy
