"""Lists and watches of broken servers: undecodable objects, endless lists, silent watches."""

import asyncio
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube.client import (
    ApiError,
    LostAnswerError,
    QuietError,
    TooLargeError,
)
from poseidon_py.kube.lines import Lines
from poseidon_py.kube.list_watch import Watch
from poseidon_py.state.handlers import PodHandler
from poseidon_py.state.store import Store
from poseidon_py.state.watch_set import PODS
from tests.poseidon_py.builders import pod_json
from tests.poseidon_py.kube.mutations import cut, mutated
from tests.poseidon_py.kube.watch_script import A, B, C, bookmark, line, page, play

# -- what cannot be decoded ---------------------------------------------------------------------------------------

DEEP = b"[" * 100_000 + b"]" * 100_000  # more than the stack of any version of Python


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
        ("listed", ["uid-a", "uid-b", "uid-bad"]),
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
