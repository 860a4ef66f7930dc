"""A scheduler to look at: the store of a rig, tracked jobs, and the page on both ports of a real HTTP server."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import aiohttp

from poseidon_py.app.queries.answers import jobs_answer
from poseidon_py.app.queries.gang_list import UnknownGang
from poseidon_py.app.queries.queue_list import UnknownQueue
from poseidon_py.app.queries.round_network import UnknownNetwork
from poseidon_py.app.serving.access_review import TOKENS
from poseidon_py.app.serving.http_endpoints import Probes
from poseidon_py.dashboard.dashboard import Dashboard
from poseidon_py.kube import credentials
from poseidon_py.state.store import Store
from poseidon_py.tracking.tracker import Tracker
from tests.poseidon_py.app.serving.answers import Answers
from tests.poseidon_py.builders import pod

API = "/dashboard/api"


class Reviews:
    """An API server that knows every token as a user's name; `admin` may list all pods, others those of the namespace
    of their name. `page_readers` may get the page."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []

    async def start(self) -> None:
        pass

    async def close(self) -> None:
        pass

    async def create(self, path: str, body: Any, timeout: float = 30.0) -> bytes:
        spec = body["spec"]
        if path == TOKENS:
            user = {"username": spec["token"]}
            return json.dumps({"status": {"authenticated": True, "user": user}}).encode()
        self.asked.append(spec)
        if "nonResourceAttributes" in spec:
            allowed = spec["user"] != "stranger"
        else:
            asked = spec["resourceAttributes"]
            assert (asked["verb"], asked["resource"]) == ("list", "pods")
            allowed = spec["user"] in ("admin", asked.get("namespace"))
        return json.dumps({"status": {"allowed": allowed}}).encode()


class Seen(Answers):
    """What the page looks at. `put` creates pods."""

    session: aiohttp.ClientSession

    def __init__(self, store: Store, engine: Any, plotly: Path, **settings: Any) -> None:
        super().__init__(secure_port=0, **settings)
        self.store = store
        self.engine = engine
        self.metrics = store.metrics
        self.conditions: dict[str, str] = {}
        self.runtime: Any = SimpleNamespace(reporter=SimpleNamespace(conditions=self.conditions))
        self.tracker = Tracker(frozenset({"poseidon"}), now=lambda: 1_000.0)
        self.tracker.listed(())
        self.leads = True
        self.pages: Any = None
        self.round_listeners: list[Any] = []
        self.queue_body: dict[str, Any] = {"kind": None, "why": "", "how": "", "problems": {}, "queues": []}
        self.gang_body: dict[str, Any] = {"gangs": []}
        self.network_body: dict[str, Any] | None = None
        self.explained: dict[str, Any] = {}
        self.dashboard = Dashboard(self, plotly, sleep=lambda _: asyncio.sleep(0.01), now=lambda: 2_000.0)
        self.dashboard.attach()
        self.reviews = Reviews()
        self.probes = Probes(self, lambda _: self.reviews, self.pages)

    def put(self, name: str, **fields: Any) -> None:
        seen = pod(name, **fields)
        self.store.observe_pod(seen)
        self.tracker.observed(seen)

    def serves(self) -> dict[str, Any]:
        return {"version": "1", "server": "https://api", "scheduler_names": ["poseidon"]}

    async def explain(self, namespace: str, name: str) -> dict[str, Any] | None:
        known = self.store.pod_named(namespace, name)
        nothing: dict[str, Any] = {
            "problem": "",
            "message": "",
            "state": "waits",
            "story": [],
            "nearest": [],
            "gang": None,
        }
        return nothing | {"pod": known.full_name, "uid": known.uid} | self.explained if known is not None else None

    async def gangs(self, name: str, namespace: str) -> dict[str, Any]:
        found = [gang for gang in self.gang_body["gangs"] if name in ("", gang["name"])]
        if not found and name:
            raise UnknownGang(f"gang {name} not found; did you mean red/first?")
        return {"gangs": [dict(gang) for gang in found]}

    async def queues(self, name: str) -> dict[str, Any]:
        if name and not any(each["name"] == name for each in self.queue_body["queues"]):
            raise UnknownQueue(f"queue {name} not found")
        return self.queue_body

    async def jobs(self, **selection: str) -> dict[str, Any]:
        async def explain(known: Any) -> dict[str, Any]:
            return {"problem": "", "message": self.conditions.get(known.uid, ""), "state": "waits"}

        return await jobs_answer(self.store, self.tracker, explain, [], **selection)

    async def network(self, **selection: str) -> dict[str, Any]:
        if self.network_body is None:
            raise UnknownNetwork("no network was kept")
        return self.network_body

    async def get(self, path: str, token: str = "", **given: Any) -> tuple[int, Any, Any]:
        """Status, body (JSON if it is), headers; at the health port, or with a token at the secure port."""
        base = f"https://127.0.0.1:{self.probes.secure_port}" if token else f"http://127.0.0.1:{self.probes.port}"
        headers = {"Authorization": f"Bearer {token}"} if token.strip() else {}
        async with self.session.get(base + path, headers=headers, ssl=False, allow_redirects=False, **given) as answer:
            text = await answer.text()
            body = json.loads(text) if answer.content_type == "application/json" else text
            return answer.status, body, answer.headers

    async def ask(self, path: str, token: str = "") -> Any:
        """The body of an endpoint."""
        status, body, _ = await self.get(f"{API}/{path}", token)
        assert status == 200, body
        return body


@asynccontextmanager
async def served(seen: Seen) -> AsyncIterator[Seen]:
    await seen.probes.start()
    await seen.probes.start_secure(credentials.at("http://127.0.0.1:9"))
    async with aiohttp.ClientSession() as seen.session:
        yield seen
    await seen.probes.stop()


def names_in(body: Any) -> set[str]:
    """All NAMESPACE/NAME of the namespaces red and blue in an answer, wherever they are."""
    return set(re.findall(r"\b(?:red|blue)/[-a-z0-9]+", json.dumps(body)))
