"""How often a server is asked what it serves."""

import asyncio

import pytest

from poseidon_py.kube.client import UnreachableError
from poseidon_py.kube.informers.discovery import FRESH, Discovery
from poseidon_py.kube.informers.informer import Informer
from poseidon_py.kube.informers.informers import RECHECK, Informers
from poseidon_py.kube.informers.kinds import GroupKind, ServedKinds
from poseidon_py.kube.informers.resource import Resource
from poseidon_py.kube.list_watch import WatchOptions
from poseidon_py.kube.objects import Metadata
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.object_handler import ObjectHandler, by_name
from poseidon_py.util.tasks import end_tasks
from tests.poseidon_py.kube.informers.kind_server import KindServer
from tests.poseidon_py.settling import VirtualTime, settle


@pytest.fixture
async def time():
    return VirtualTime()


@pytest.fixture
async def server(time):
    found = KindServer()
    for kind in ("apples.a.io", "beans.a.io", "cherries.c.io"):
        found.install(kind, "v1")
    return found


async def test_all_kinds_of_all_groups_share_the_answers(time, server):
    """Twelve kinds in four groups took eight requests for each look; those of a group that is not served, one."""
    informers = Informers(server, watching=WatchOptions(), metrics=Metrics())
    for plural, group in (("apples", "a.io"), ("beans", "a.io"), ("cherries", "c.io"), ("dates", "d.io"), ("elms", "")):
        handler: ObjectHandler = ObjectHandler(plural, by_name, lambda item: None, lambda key: None, Metrics())
        informer = Informer(Resource(group, plural, ("v1",)), handler, Metadata, "nothing follows")
        informer.awaited = False
        informers.add(informer)
    found: list[GroupKind] = []
    kinds = ServedKinds(informers.discovery, found.append)
    task = asyncio.create_task(informers.run())
    kinds.find(GroupKind("a.io", "Fig"))
    await settle()
    discoveries = {"/apis": 1, "/apis/a.io/v1": 1, "/apis/c.io/v1": 1}
    assert {path: server.asked[path] for path in (*discoveries, "/apis/d.io/v1")} == {**discoveries, "/apis/d.io/v1": 0}
    assert found == [GroupKind("a.io", "Fig")]
    await kinds.stop()
    await time.elapse(10 * RECHECK + 5)
    assert server.asked["/apis/a.io/v1"] == 11  # each 30 s
    assert server.asked["/apis"] <= 11 * 3  # groups that are looked at within a second share it
    await end_tasks(task)


async def test_a_kind_that_was_refused_stays_closed_until_it_is_listed(time, server):
    """Served at last in a version that is supported, but its list hangs: it was open without its objects."""
    seen: list[str] = []
    handler: ObjectHandler = ObjectHandler("cherries", by_name, lambda item: None, lambda key: None, Metrics())
    resource = Resource("c.io", "cherries", ("v1",))
    informer = Informer(resource, handler, Metadata, "nothing follows", required=False)
    informer.settled = lambda: seen.append(informer.unreadable)
    server.remove("cherries.c.io")
    server.install("cherries.c.io", "v7")
    informers = Informers(server, watching=WatchOptions(), metrics=Metrics())
    informers.add(informer)
    task = asyncio.create_task(informers.run())
    await settle()
    assert "v7" in seen[-1]
    server.install("cherries.c.io", "v1")
    server.fail("cherries.c.io", "hanging")
    await time.elapse(RECHECK + 1)
    assert (informer.path, seen[-1]) == ("", "cannot list cherries.c.io yet; see the scheduler's log")
    server.mend()
    await time.elapse(RECHECK + 1)
    assert (informer.path, seen[-1]) == ("/apis/c.io/v1/cherries", "")
    await end_tasks(task)


async def test_an_answer_is_as_new_as_who_asks_needs_it(time, server):
    discovery = Discovery(server)
    first = await discovery.group("a.io")
    assert first.versions_of("apples") == ["v1"]
    server.remove("apples.a.io")
    assert (await discovery.group("a.io")).versions_of("apples") == ["v1"]  # it counts as current
    asked_at = time.now
    assert (await discovery.group("a.io", since=time.now)).versions_of("apples") == []
    server.install("apples.a.io", "v1")
    newer = await discovery.group("a.io", since=asked_at)
    assert newer.versions_of("apples") == []  # it was asked for after that
    assert newer.asked_at > asked_at
    await time.elapse(FRESH)
    assert (await discovery.group("a.io")).versions_of("apples") == ["v1"]


async def test_a_failure_is_that_of_all_who_ask_at_the_time(time, server):
    discovery = Discovery(server)
    server.unreachable = True
    asking = [asyncio.create_task(discovery.group(group)) for group in ("a.io", "a.io", "c.io")]
    errors = await asyncio.gather(*asking, return_exceptions=True)
    assert [str(error) for error in errors] == ["refused"] * 3
    assert server.asked["/apis"] == 1
    server.unreachable = False
    with pytest.raises(UnreachableError):
        await discovery.group("a.io")
    assert (await discovery.group("a.io", since=time.now)).versions_of("beans") == ["v1"]


async def test_a_server_that_is_down_is_asked_no_more_often_for_more_resources_and_the_log_says_it_once(
    time, server, caplog
):
    """Questions of each group come every five seconds at most, and the groups of a second share one."""
    server.unreachable = True
    informers = Informers(server, watching=WatchOptions(), metrics=Metrics())
    for group in range(5):
        handler: ObjectHandler = ObjectHandler("things", by_name, lambda item: None, lambda key: None, Metrics())
        informers.add(Informer(Resource(f"g{group}.io", "things", ("v1",)), handler, Metadata, "nothing follows"))
    kinds = ServedKinds(informers.discovery, lambda kind: None)
    kinds.find(GroupKind("g0.io", "Thing"))
    task = asyncio.create_task(informers.run())
    every = [each for group in informers._groups.values() for each in group.informers]
    for _ in range(60):
        await time.elapse(1)
        for each in every:  # a pod with such an owner arrives
            informers.demand(each)
            informers.ask(each)
    assert server.asked["/apis"] <= 5 * (60 / 5 + 4) + 8
    assert caplog.text.count("cannot find out what is served of g3.io: refused; asking until") == 1
    assert caplog.text.count("cannot find out whether Thing.g0.io is served: refused; asking until") == 1
    server.unreachable = False
    await time.elapse(RECHECK)
    server.unreachable = True
    await time.elapse(60)
    assert caplog.text.count("cannot find out what is served of g3.io") == 2
    await kinds.stop()
    await end_tasks(task)
