"""The stream of events: one serialisation for all readers, none without readers, few readers."""

import asyncio
import json

import pytest

from poseidon_py.app.serving.access_review import Refused
from poseidon_py.dashboard.stream import READERS, Stream
from tests.poseidon_py.dashboard.seen import API


async def events(answer, number):
    """The next events of a reader."""
    found: list[dict[str, object]] = []
    while len(found) < number:
        line = await answer.content.readline()
        assert line, "the stream has ended"
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    return found


async def test_readers_are_told_sums_at_once_and_changes(seen):
    async with seen.session.get(f"http://127.0.0.1:{seen.probes.port}{API}/stream") as answer:
        assert answer.content_type == "text/event-stream"
        (first,) = await events(answer, 1)
        assert (first["placed"], first["pending"], first["nodes"], first["round"]) == (2, 2, 2, 0)
        assert set(first) == {
            "survey", "round", "seconds", "placed", "pending", "nodes", "leading", "not_ready"
        }  # fmt: skip  # sums alone: all readers get the same
        seen.leads = False
        (changed,) = await events(answer, 1)
        assert not changed["leading"]


async def test_the_number_of_readers_is_bounded_and_others_are_told(seen):
    url = f"http://127.0.0.1:{seen.probes.port}{API}/stream"
    readers = [await seen.session.get(url) for _ in range(READERS)]
    status, body, headers = await seen.get(f"{API}/stream")
    assert (status, headers["Retry-After"]) == (503, "30")
    assert f"{READERS} pages read the stream already" in body["error"]
    for reader in readers:
        reader.close()
    assert (await seen.get("/livez"))[0] == 200


async def test_a_tick_is_made_once_for_all_and_only_while_somebody_reads():
    made, written = 0, []
    due = asyncio.Event()

    async def tick():
        nonlocal made
        made += 1
        return b"%d" % (made // 2)

    async def sleep(_):
        await due.wait()
        due.clear()

    class Response:
        def __init__(self, name):
            self.name = name

        async def write(self, message):
            written.append((self.name, message))

    stream = Stream(tick, sleep=sleep, limit=3)

    async def read(name):
        new = asyncio.Event()
        stream._readers.add(new)
        await stream._send(Response(name), new)  # type: ignore[arg-type]

    assert made == 0
    readers = [asyncio.create_task(read(name)) for name in "ab"]
    await asyncio.sleep(0)
    ticking = asyncio.create_task(stream._run())
    for _ in range(3):  # of which the second is different from the first, and the third the same
        await asyncio.sleep(0.001)
        due.set()
    await asyncio.sleep(0.001)
    assert made == 4
    for name in "ab":  # ticks 1 to 4 are 0, 1, 1, 2
        assert [message for reader, message in written if reader == name] == [b"data: %d\n\n" % n for n in (0, 1, 2)]
    stream._readers.add(asyncio.Event())
    with pytest.raises(Refused, match="3 pages read the stream already"):
        await stream.serve(None)  # type: ignore[arg-type]
    await stream.stop()
    await asyncio.gather(*readers)
    ticking.cancel()
