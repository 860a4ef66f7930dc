"""What a live benchmark leaves behind on a server: nothing, also if the server does not finish in one go."""

import asyncio
from typing import Any

import orjson
import pytest

from benchmarks.live import remove
from poseidon_py.kube import LostAnswerError, api_error


class Server:
    """Deletes so many at a time, and then fails; the request that deletes the last of a kind is answered."""

    def __init__(self, pods, nodes, at_once, failure):
        self.left = {"pods": pods, "nodes": nodes}
        self._at_once, self._failure = at_once, failure
        self.deletions = 0

    async def call(self, verb, path, body=b"", timeout=30.0):
        kind = path.partition("?")[0].rpartition("/")[2]
        assert "labelSelector=poseidon-bench%3Dtrue" in path, "nothing of anybody else"
        if verb == "GET":
            return orjson.dumps({"items": [{}] * min(self.left[kind], 1)})
        assert verb == "DELETE"
        self.deletions += 1
        self.left[kind] = max(self.left[kind] - self._at_once, 0)
        if self.left[kind]:
            raise self._failure
        return b"{}"


@pytest.mark.parametrize("failure", [LostAnswerError("lost"), api_error(504, b"", None)], ids=["lost", "504"])
def test_what_a_server_could_not_delete_in_time_is_deleted_in_the_end(failure):
    server: Any = Server(pods=10, nodes=3, at_once=4, failure=failure)
    asyncio.run(remove(server))
    assert server.left == {"pods": 0, "nodes": 0}
    assert server.deletions == 3 + 1


def test_a_server_that_deletes_nothing_is_not_asked_for_ever():
    server: Any = Server(pods=1, nodes=0, at_once=0, failure=LostAnswerError("lost"))
    asyncio.run(remove(server, ["pods"]))
    assert server.deletions == 20
