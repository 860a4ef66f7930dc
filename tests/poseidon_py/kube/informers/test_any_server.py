"""Informers against a model: whatever happened to a server, those of the kinds that it serves now know what it has.

Faults last until they are mended, and concern one kind or one group; nothing of them shows in the others.
"""

import asyncio
from typing import Any

import pytest
from hypothesis import HealthCheck
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule
from msgspec import Struct, field

from poseidon_py.kube.informers.informer import Informer
from poseidon_py.kube.informers.informers import SAY_AFTER, Informers
from poseidon_py.kube.informers.resource import Resource
from poseidon_py.kube.list_watch import WatchOptions
from poseidon_py.kube.objects import Metadata
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.object_handler import ObjectHandler, by_name
from poseidon_py.util.tasks import end_tasks
from tests.effort import examples
from tests.poseidon_py.kube.informers.kind_server import FAULTS, KindServer
from tests.poseidon_py.settling import VirtualTime

RESOURCES = {
    each.label: each
    for each in (
        Resource("a.io", "apples", ("v2", "v1")),
        Resource("a.io", "beans", ("v1",)),
        Resource("c.io", "cherries", ("v1",)),
        Resource("", "configmaps", ("v1",)),
    )
}
DEFINED = [label for label, resource in RESOURCES.items() if resource.group]
"""Kinds with a definition, which comes and goes."""
LONG = 130.0
"""Seconds after which all is known: 31 until a definition that is gone is believed to be, 30 between two failed lists,
60 between two lists after a defect."""
CURSED = "cursed"
"""An object that triggers a defect while the machine says so."""

kinds = st.sampled_from([*RESOURCES])
names = st.sampled_from(["a", "b", CURSED])
versions = st.sampled_from([("v1",), ("v2",), ("v2", "v1"), ("v7",), ("v7", "v1"), ()])
faults = st.sampled_from(FAULTS)


class Item(Struct):
    metadata: Metadata = field(default_factory=Metadata)
    value: int = 0


class Known(ObjectHandler[Item]):
    """The handler of an informer, and what it was told."""

    def __init__(self, resource: Resource, machine: "AnyServer", *, required: bool) -> None:
        super().__init__(resource.plural, by_name, self._take, self._forget, Metrics())
        self.objects: dict[str, int] = {}
        self.listed_at = ""
        """Where all objects were listed last."""
        self.cleared_wrongly = False
        self._machine = machine
        self._resource = resource
        self.informer = Informer(
            resource, self, Item, "nothing follows", settled=self._note, patience=SAY_AFTER, required=required
        )
        self.informer.awaited = False
        self.settled = False, ""
        """Whether it is ready and why it cannot be read, as it was told last."""

    def _note(self) -> None:
        self.settled = self.informer.ready, self.informer.unreadable

    def _take(self, item: Item) -> None:
        if item.metadata.name == CURSED and self._machine.defect:
            raise RuntimeError("a defect")
        self.objects[item.metadata.name] = item.value

    def _forget(self, name: str) -> None:
        self.objects.pop(name, None)

    def listed(self, uids: set[str]) -> None:
        super().listed(uids)
        self.listed_at = self.informer.location

    def clear(self) -> None:
        super().listed(set())
        self.listed_at = ""
        self.cleared_wrongly |= bool(self._machine.version_of(self._resource))


class AnyServer(RuleBasedStateMachine):
    """Rules do things to the server, in any order and at any time; `check` waits, and compares."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.defect = False
        self.values = 0
        self.valid: dict[tuple[str, str], set[int]] = {}
        """Kind and name -> all values that an object of that name has had."""

    @initialize(
        served=st.fixed_dictionaries(dict.fromkeys(DEFINED, versions)), broken=kinds, fault=faults, defect=st.booleans()
    )
    def start(self, served: dict[str, tuple[str, ...]], broken: str, fault: str, defect: bool) -> None:
        self.defect = defect
        self.loop.run_until_complete(self._start(served, broken, fault))
        self.check()
        for kind, informer in ((kind, self.known[kind].informer) for kind in DEFINED if kind != broken):
            refused = bool(served[kind]) and not self.version_of(RESOURCES[kind])
            assert informer.ready is not (refused and informer.required)

    async def _start(self, served: dict[str, tuple[str, ...]], broken: str, fault: str) -> None:
        self.time = VirtualTime()
        self.server = KindServer()
        for kind, in_versions in {**served, "configmaps": ("v1",)}.items():
            if in_versions:
                self.server.install(kind, *in_versions)
            for name in ("a", CURSED) if in_versions else ():
                self._put(kind, name)
        self.server.fail(broken, fault)
        self.informers = Informers(self.server, watching=WatchOptions(), metrics=Metrics())
        self.known = {
            label: Known(resource, self, required=resource.plural == "beans") for label, resource in RESOURCES.items()
        }
        for each in self.known.values():
            self.informers.add(each.informer)
        self.task = asyncio.create_task(self.informers.run())

    def version_of(self, resource: Resource) -> str:
        """The version in which a resource is to be read; empty: none."""
        kind = self.server.kinds.get(resource.label)
        return next((each for each in resource.versions if kind is not None and each in kind.versions), "")

    def teardown(self) -> None:
        if hasattr(self, "task"):
            self.mend()
            self.check()
            self.loop.run_until_complete(end_tasks(self.task))
        self.loop.close()

    # -- what happens -----------------------------------------------------------------------------------------

    @rule(kind=st.sampled_from(DEFINED), served=versions, anew=st.booleans())
    def define(self, kind: str, served: tuple[str, ...], anew: bool) -> None:
        if anew or not served:
            self.server.remove(kind)
        if served:
            self.server.install(kind, *served)

    @rule(
        kind=kinds,
        name=names,
        how=st.sampled_from(["put", "recreate", "delete", "malformed"]),
        then=st.sampled_from(["", "compact", "break_watches", "expire_watches"]),
    )
    def change(self, kind: str, name: str, how: str, then: str) -> None:
        if kind in self.server.kinds:
            if how in ("recreate", "delete"):
                self.server.delete(kind, name)
            if how == "malformed":
                self.server.put(kind, name, "odd")
            elif how != "delete":
                self._put(kind, name)
        if then:
            getattr(self.server, then)()

    def _put(self, kind: str, name: str) -> None:
        self.values += 1
        self.server.put(kind, name, self.values)
        self.valid.setdefault((kind, name), set()).add(self.values)

    @rule(seconds=st.sampled_from([0, 0.3, 3, 40]))
    def wait(self, seconds: float) -> None:
        self.loop.run_until_complete(self.time.elapse(seconds))

    @rule(what=st.sampled_from([*RESOURCES, "/apis/a.io/v1", "/apis/c.io/v1"]), fault=faults, then_check=st.booleans())
    def fail(self, what: str, fault: str, then_check: bool) -> None:
        self.server.fail(what, fault)
        if then_check and not self.server.unreachable:
            self.check()

    @rule(what=st.sampled_from(["unreachable", "defect", *DEFINED]))
    def trouble(self, what: str) -> None:
        """A kind: the next discovery misses it."""
        if what == "unreachable":
            self.server.unreachable = True
            self.server.break_watches()
        elif what == "defect":
            self.defect = True
        else:
            self.server.forgotten = what

    @rule()
    def mend(self) -> None:
        self.server.mend()
        self.defect = False

    # -- what must be true ------------------------------------------------------------------------------------

    @rule()
    @precondition(lambda self: not self.server.unreachable)
    def check(self) -> None:
        self.loop.run_until_complete(self.time.elapse(LONG))
        for kind in RESOURCES:
            if f"/apis/{RESOURCES[kind].group}/v1" not in self.server.faults:
                self._check(kind)

    def _check(self, kind: str) -> None:
        known, served = self.known[kind], self.server.kinds.get(kind)
        informer, resource = known.informer, RESOURCES[kind]
        version = self.version_of(resource)
        assert not known.cleared_wrongly
        assert known.settled == (informer.ready, informer.unreadable), "it is told of each change"
        if not version:
            assert (known.objects, informer.path) == ({}, "")
            assert bool(informer.unreadable) == bool(informer.unsupported) == (served is not None)
            assert served is None or all(each in informer.unreadable for each in served.versions)
            assert informer.ready or (served is not None and informer.required)
            return
        assert served is not None
        assert informer.location == resource.collection(version)
        watched = [path for path in self.server.open_watches.elements() if path.endswith(f"/{resource.plural}")]
        assert watched in ([], [informer.location])
        listed = known.listed_at == informer.location
        fault = self.server.faults.get(kind, "")
        assert listed or fault
        assert bool(informer.unreadable) is not listed or fault == "hanging"
        assert informer.path == ("" if informer.unreadable else informer.location)
        assert informer.ready or not listed
        if not fault:
            for name in known.objects.keys() | served.objects.keys():
                self._check_object(kind, name, served.objects.get(name))

    def _check_object(self, kind: str, name: str, obj: dict[str, Any] | None) -> None:
        """Of one that is malformed now, or triggers a defect, an earlier state is known, or none."""
        found = self.known[kind].objects.get(name)
        if obj is None:
            assert found is None
        elif obj["value"] == "odd" or (name == CURSED and self.defect):
            assert found is None or found in self.valid[kind, name]
        else:
            assert found == obj["value"]


AnyServer.TestCase.settings = examples(15, steps=12, suppress_health_check=[HealthCheck.too_slow])
TestAnyServer = pytest.mark.slow(AnyServer.TestCase)
