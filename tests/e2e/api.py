"""A small blocking client of an API server, and a view that follows objects by watching.

Shares no code with the product: the scheduler's state is compared with what an independent client reads.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar
from urllib.parse import urlsplit

Json = dict[str, Any]
T = TypeVar("T")

PATIENCE = 60.0
"""Seconds for anything that is waited for: a limit, never an expectation."""

MERGE = "application/merge-patch+json"


class ApiError(Exception):
    """The server answered with an error."""

    def __init__(self, code: int, body: str) -> None:
        super().__init__(f"{code}: {body[:500]}")
        self.code, self.body = code, body


@dataclass(frozen=True)
class Api:
    """One API server. Each request has a separate connection: simple, and thread-safe."""

    url: str
    token: str = ""
    tls: ssl.SSLContext | None = None

    def connect(self, timeout: float) -> http.client.HTTPConnection:
        where = urlsplit(self.url)
        assert where.hostname is not None
        if where.scheme == "https":
            return http.client.HTTPSConnection(where.hostname, where.port, timeout=timeout, context=self.tls)
        return http.client.HTTPConnection(where.hostname, where.port, timeout=timeout)

    def send(
        self, connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, kind: str = ""
    ) -> http.client.HTTPResponse:
        headers = {"Accept": "application/json"}
        if self.token:
            headers["Authorization"] = f"Bearer {self.token}"
        if body is not None:
            headers["Content-Type"] = kind or "application/json"
        connection.request(method, path, None if body is None else json.dumps(body).encode(), headers)
        return connection.getresponse()

    def __call__(self, method: str, path: str, body: Any = None, kind: str = "") -> Any:
        """The parsed answer. Raises ApiError if it is not a success, OSError if there is none."""
        connection = self.connect(20.0)
        try:
            answer = self.send(connection, method, path, body, kind)
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status >= 300:
            raise ApiError(answer.status, text)
        return json.loads(text) if text.startswith(("{", "[")) else text

    def many(self, method: str, requests: list[tuple[str, Any]]) -> list[Any]:
        """Several concurrent requests; a 404 is None, for objects that are deleted independently."""

        def one(request: tuple[str, Any]) -> Any:
            try:
                return self(method, *request)
            except ApiError as error:
                if error.code == 404:
                    return None
                raise

        with ThreadPoolExecutor(4) as pool:
            return list(pool.map(one, requests))

    def watch(self, path: str, version: str, opened: Callable[[socket.socket], None]) -> Iterator[Json]:
        """Events from a version on, until the server ends the watch."""
        connection = self.connect(PATIENCE)
        try:
            connection.connect()
            opened(connection.sock)
            query = f"watch=true&resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=600"
            answer = self.send(connection, "GET", f"{path}?{query}")
            if answer.status != 200:
                raise ApiError(answer.status, answer.read().decode())
            while line := answer.readline():
                yield json.loads(line)
        finally:
            connection.close()


class View:
    """Follows one kind of object: the newest state by UID, all events, and waiting for conditions."""

    def __init__(self, api: Api, path: str) -> None:
        self._api = api
        self._path = path
        self._changed = threading.Condition()
        self._stopping = False
        self._socket: socket.socket | None = None
        self._problem = ""
        self._version = ""
        self.objects: dict[str, Json] = {}
        self.history: list[tuple[str, Json]] = []
        self._thread = threading.Thread(target=self._run, name=f"view of {path}", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        with self._changed:
            self._stopping = True
            if self._socket is not None:
                with contextlib.suppress(OSError):
                    self._socket.shutdown(socket.SHUT_RDWR)
            self._changed.notify_all()
        self._thread.join(PATIENCE)

    def _run(self) -> None:
        while not self._stopping:
            try:
                if not self._version:
                    self._list()
                for event in self._api.watch(self._path, self._version, self._opened):
                    if event["type"] == "ERROR":
                        self._version = ""
                        break
                    self._take(event["type"], event["object"])
            except ApiError as error:
                self._problem = str(error)
                self._version = "" if error.code == 410 else self._version
            except (OSError, http.client.HTTPException, ValueError) as error:
                self._problem = repr(error)
            with self._changed:
                if not self._stopping:
                    self._changed.wait(0.05)  # a server that is down

    def _opened(self, connection: socket.socket) -> None:
        with self._changed:
            self._socket = connection
            if self._stopping:
                raise OSError("stopped")

    def _list(self) -> None:
        answer = self._api("GET", self._path)
        there = {item["metadata"]["uid"]: item for item in answer["items"]}
        for uid in [uid for uid in self.objects if uid not in there]:
            self._take("DELETED", self.objects[uid])
        for item in there.values():
            self._take("ADDED", item)
        self._version = answer["metadata"]["resourceVersion"]

    def _take(self, what: str, item: Json) -> None:
        self._version = item["metadata"]["resourceVersion"]
        if what == "BOOKMARK":
            return
        with self._changed:
            if what == "DELETED":
                self.objects.pop(item["metadata"]["uid"], None)
            else:
                self.objects[item["metadata"]["uid"]] = item
            self.history.append((what, item))
            self._changed.notify_all()

    def until(self, condition: Callable[[list[Json]], T], what: str = "", seconds: float = PATIENCE) -> T:
        """Evaluates the condition after each change until it is truthy; returns its value."""
        end = time.monotonic() + seconds
        with self._changed:
            while True:
                found = condition(list(self.objects.values()))
                if found:
                    return found
                if time.monotonic() >= end:
                    raise AssertionError(f"waited in vain for {what or condition}: {self._summary()}")
                self._changed.wait(max(0.0, end - time.monotonic()))

    def _summary(self) -> str:
        lines = []
        for item in list(self.objects.values())[-25:]:
            status, spec = item.get("status", {}), item.get("spec", {})
            message = [c.get("message", "") for c in status.get("conditions", []) if c.get("type") == "PodScheduled"]
            lines.append(
                f"{item['metadata']['name']} {spec.get('nodeName', '')} {status.get('phase', '')} "
                f"{item.get('reason', '')} {item.get('message', '')} {' '.join(message)}"
            )
        return f"{len(self.objects)} at {self._path}, problem {self._problem!r}\n  " + "\n  ".join(lines)
