"""A synthetic API server for the discovery of objects, and the control of its retries."""

import asyncio
import json
from contextlib import asynccontextmanager

from poseidon_py.kube.client import ApiError, NotFoundError
from poseidon_py.kube.informers.informers import SAY_AFTER, Informers
from poseidon_py.kube.list_watch import WatchOptions
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs.object_cache import ObjectCache
from poseidon_py.util.tasks import end_tasks


class Api:
    """Serves jobs, and the objects in `served`; `denied` paths answer 403."""

    def __init__(self):
        self.served = {"/apis/batch": ["v1"], "/apis/batch/v1": ["jobs"]}
        self.kinds: dict[str, dict] = {}
        """Name of a resource -> further fields of its discovery."""
        self.metadata_only: list[str] = []
        """Paths of which metadata was listed."""
        self.items: dict[str, str] = {}
        self.listed: dict[str, list[str]] = {}
        self.denied: set[str] = set()
        self.asked: list[str] = []
        self.faults: list[Exception] = []

    async def call(self, verb, path):
        await asyncio.sleep(0)
        self.asked.append(path)
        if self.faults:
            raise self.faults.pop()
        if path in self.items:
            return self.items[path].encode()
        if path == "/apis":
            found = {each.removeprefix("/apis/"): names for each, names in self.served.items() if each.count("/") == 2}
            groups = [
                {"name": group, "versions": [{"version": each} for each in names]} for group, names in found.items()
            ]
            return json.dumps({"groups": groups}).encode()
        if path not in self.served:
            raise NotFoundError(404, "NotFound", path)
        names = self.served[path]
        return json.dumps({"resources": [{"name": name, **self.kinds.get(name, {})} for name in names]}).encode()

    @property
    def metadata(self):
        return Metadata(self)

    async def page(self, path, parameters):
        await asyncio.sleep(0)
        if path in self.denied:
            raise ApiError(403, "Forbidden", "no")
        listed = ", ".join(self.listed.get(path, ()))
        return b'{"metadata": {"resourceVersion": "1"}, "items": [%b]}' % listed.encode()

    async def watch(self, path, parameters, silence):
        await asyncio.Event().wait()
        yield b""


class Metadata:
    """The lists and watches of metadata alone."""

    def __init__(self, api):
        self._api = api

    async def page(self, path, parameters):
        self._api.metadata_only.append(path)
        return await self._api.page(path, parameters)

    def watch(self, path, parameters, silence):
        return self._api.watch(path, parameters, silence)


PATIENCE = 0.1


class Retries:
    """Sleeps as long as is waited for an owner take no time; longer ones, before it is asked for again, end with
    `now`."""

    def __init__(self):
        self.now = asyncio.Event()

    async def sleep(self, seconds):
        if seconds > PATIENCE:
            await self.now.wait()


def recheck(found):
    """Lets the next discovery of the resources begin."""
    for group in found._informers._groups.values():
        group.since = asyncio.get_running_loop().time()
        group.wake.set()


@asynccontextmanager
async def object_cache(api, changed, resolved, retries, *, pause=0.0, say_after=SAY_AFTER):
    """A cache that runs."""
    informers = Informers(
        api, watching=WatchOptions(), metrics=Metrics(), pause=pause, say_after=say_after, sleep=retries.sleep
    )
    found = ObjectCache(
        api, informers, changed, resolved, patience=PATIENCE, pause=pause, say_after=say_after, sleep=retries.sleep
    )
    tasks = [asyncio.create_task(each.run()) for each in (informers, found)]
    try:
        yield found
    finally:
        await end_tasks(*tasks)
