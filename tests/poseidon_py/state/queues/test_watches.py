"""The kinds of queues that are served, and what is watched of them."""

import asyncio
import json
from contextlib import asynccontextmanager

import pytest

from poseidon_py.kube.client import ApiError, BusyError, NotFoundError, UnreachableError
from poseidon_py.kube.informers.informers import RECHECK, Informers
from poseidon_py.kube.list_watch import WatchOptions
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.queues.kueue import CLUSTER_QUEUES
from poseidon_py.state.queues.own import QUEUES
from poseidon_py.state.queues.watches import QueueWatches
from poseidon_py.util.tasks import end_tasks
from tests.poseidon_py.settling import VirtualTime, settle
from tests.poseidon_py.state.queues.rig import Rig


class Api:
    """`groups`: group -> version -> plural names; `objects`: path -> those listed there."""

    def __init__(self):
        self.groups: dict[str, dict[str, list[str]]] = {}
        self.objects: dict[str, list[dict]] = {}
        self.there: dict[str, list[dict]] = {}
        """Path -> leases, Deployments or webhook configurations of others that exist."""
        self.denied: set[str] = set()
        self.answers: dict[str, Exception | bytes] = {}
        """Of paths that do not answer with a list."""
        self.fail: list[Exception] = []
        self.listed: list[tuple[str, str]] = []
        self.events: dict[str, asyncio.Queue] = {}

    async def call(self, verb, path):
        await asyncio.sleep(0)
        if self.fail:
            raise self.fail.pop(0)
        if path == "/apis":
            groups = [
                {"name": group, "versions": [{"version": each} for each in versions]}
                for group, versions in self.groups.items()
            ]
            return json.dumps({"groups": groups}).encode()
        _, _, group, version = path.split("/")
        if group not in self.groups:
            raise NotFoundError(404, "NotFound", path)
        return json.dumps({"resources": [{"name": each} for each in self.groups[group][version]]}).encode()

    @property
    def metadata(self):
        raise AssertionError("queues are read as a whole")

    async def page(self, path, parameters):
        await asyncio.sleep(0)
        if path.startswith(("/apis/apps/", "/apis/coordination", "/apis/admission")):
            return json.dumps({"items": self.there.get(path, [])}).encode()
        self.listed.append((path, parameters.get("fieldSelector", "")))
        if path in self.denied:
            raise ApiError(403, "Forbidden", "no")
        if (answer := self.answers.get(path)) is not None:
            if isinstance(answer, Exception):
                raise answer
            return answer
        items = [
            {"metadata": {"name": each["name"], "uid": f"uid-{each['name']}"}, **each}
            for each in self.objects.get(path, ())
        ]
        return json.dumps({"metadata": {"resourceVersion": "1"}, "items": items}).encode()

    async def watch(self, path, parameters, silence):
        while True:
            events = self.events.setdefault(path, asyncio.Queue())
            yield json.dumps(await events.get()).encode() + b"\n"

    def create(self, path, name, **fields):
        """An object that watches see."""
        metadata = {"name": name, "uid": f"uid-{name}", "resourceVersion": "2"}
        event = {"type": "ADDED", "object": {"metadata": metadata, **fields}}
        self.events.setdefault(path, asyncio.Queue()).put_nowait(event)


class Watching(Rig):
    def __init__(self, kind, file=None):
        super().__init__(kind)
        self.queues.kinds.running.clear()
        self.api = Api()
        self.pauses: list[float] = []
        self.metrics = Metrics()
        self.file = file

    async def _sleep(self, seconds):
        self.pauses.append(seconds)
        await asyncio.sleep(seconds)

    async def recheck(self):
        """What is looked at again from time to time, is."""
        await self.time.elapse(RECHECK + 5)

    @asynccontextmanager
    async def running(self):
        self.time = VirtualTime()
        self.informers = Informers(self.api, watching=WatchOptions(), metrics=self.metrics)
        self.watches = QueueWatches(
            self.api, self.informers, self.queues, self.metrics, file=self.file, sleep=self._sleep
        )
        tasks = [asyncio.create_task(each.run()) for each in (self.informers, self.watches)]
        await settle()
        try:
            yield
        finally:
            await end_tasks(*tasks)


DEPLOYMENTS = "/apis/apps/v1/deployments"
KUEUE = {"metadata": {"name": "kueue-controller-manager", "namespace": "kueue-system"}, "spec": {"replicas": 1}}
OWN_PATH = "/apis/poseidon.io/v1/queues"


async def test_without_any_kind_the_queues_are_known_at_once():
    rig = Watching("auto")
    async with rig.running():
        assert rig.watches.listed.is_set()
        assert rig.tree() == {}
        assert rig.pauses == [RECHECK]


async def test_what_exists_at_the_start_is_known_before_the_first_round():
    rig = Watching("auto")
    rig.api.groups["poseidon.io"] = {"v1": ["queues"]}
    rig.api.objects[OWN_PATH] = [{"name": "a", "spec": {}}]
    async with rig.running():
        assert rig.watches.listed.is_set()
        assert set(rig.tree()) == {"queue/a"}
        assert rig.watches.path_of(QUEUES, "", "a") == f"{OWN_PATH}/a"


async def test_a_kind_that_is_installed_later_is_found_and_one_that_is_removed_is_empty():
    rig = Watching("auto")
    async with rig.running():
        rig.api.groups["poseidon.io"] = {"v1": ["queues"]}
        rig.api.objects[OWN_PATH] = [{"name": "a", "spec": {}}]
        await rig.recheck()
        assert set(rig.tree()) == {"queue/a"}
        del rig.api.groups["poseidon.io"]
        await rig.recheck()
        assert rig.tree() == {}
        assert rig.watches.path_of(QUEUES, "", "a") == ""


async def test_pods_that_name_queues_of_a_kind_that_is_removed_wait():
    rig = Watching("auto")
    rig.api.groups["scheduling.run.ai"] = {"v2": ["queues"]}
    rig.api.objects["/apis/scheduling.run.ai/v2/queues"] = [{"name": "q", "spec": {}}]
    rig.pod("p", labels={"kai.scheduler/queue": "q"})
    async with rig.running():
        rig.work()
        assert (rig.kind, rig.problem("p")) == ("kai", "")
        del rig.api.groups["scheduling.run.ai"]
        await rig.recheck()
        rig.work()
        assert rig.kind == "poseidon"
        assert rig.problem("p") == "queue q does not exist: create it or change label kai.scheduler/queue"
        assert rig.sent("p").queue != 0


async def test_the_newest_supported_version_is_watched_and_an_unknown_one_is_named():
    rig = Watching("kueue")
    rig.api.groups["kueue.x-k8s.io"] = {
        "v1beta1": ["clusterqueues", "localqueues", "resourceflavors"],
        "v1beta2": ["clusterqueues", "localqueues"],
        "v7": ["cohorts"],
    }
    async with rig.running():
        assert {path for path, _ in rig.api.listed} == {
            "/api/v1/configmaps",
            "/apis/kueue.x-k8s.io/v1beta2/clusterqueues",
            "/apis/kueue.x-k8s.io/v1beta2/localqueues",
            "/apis/kueue.x-k8s.io/v1beta1/resourceflavors",
        }
        assert rig.watches.unsupported == [
            "cohorts.kueue.x-k8s.io is served in v7, not in v1beta2 or v1beta1 or v1alpha1"
        ]


KAI = "/apis/scheduling.run.ai/{}/queues"
IN_V9 = (
    "queues.scheduling.run.ai is served in v9, not in v2, which are supported; serve one of these, or upgrade the "
    "scheduler"
)


async def test_a_kind_whose_version_becomes_unsupported_is_closed_until_it_is_supported_again(caplog):
    """Its queues were those of no kind: the pods that name them were told that these do not exist."""
    rig = Watching("auto")
    rig.api.groups["scheduling.run.ai"] = {"v2": ["queues"]}
    for version in ("v2", "v9"):
        rig.api.objects[KAI.format(version)] = [{"name": "q", "spec": {}}]
    rig.pod("p", labels={"kai.scheduler/queue": "q"})
    async with rig.running():
        rig.work()
        assert (rig.kind, rig.problem("p")) == ("kai", "")
        rig.api.groups["scheduling.run.ai"] = {"v9": ["queues"]}
        await rig.recheck()
        rig.work()
        assert rig.kind == "poseidon"
        assert rig.sent("p").queue != 0
        assert rig.problem("p") == f"queue q is not known: {IN_V9}"
        assert str(rig.queues.summary()["why"]).endswith(f"queues of kind kai are not known: {IN_V9}")
        assert f"{IN_V9}; until then pods that name queues of this kind wait" in caplog.text
        assert KAI.format("v9") not in {path for path, _ in rig.api.listed}
        rig.api.groups["scheduling.run.ai"]["v2"] = ["queues"]
        await rig.recheck()
        rig.work()
        assert (rig.kind, rig.problem("p"), rig.watches.unsupported) == ("kai", "", [])


async def test_a_kind_that_is_named_must_be_served_in_a_supported_version_before_anything_is_scheduled(caplog):
    rig = Watching("kai")
    rig.api.groups["scheduling.run.ai"] = {"v9": ["queues"]}
    async with rig.running():
        assert f"{IN_V9}; until then nothing is scheduled" in caplog.text
        assert not rig.watches.listed.is_set()
        rig.api.groups["scheduling.run.ai"] = {"v2": ["queues"]}
        await rig.recheck()
        assert rig.watches.listed.is_set()


async def test_settings_in_an_unsupported_version_close_nothing():
    rig = Watching("kai")
    rig.api.groups |= {"scheduling.run.ai": {"v2": ["queues"]}, "kai.scheduler": {"v9": ["schedulingshards"]}}
    async with rig.running():
        assert rig.watches.listed.is_set()
        assert rig.kind == "kai"


@pytest.mark.parametrize(
    ("error", "closed"),
    [
        pytest.param(BusyError(500, "InternalError", "conversion webhook failed"), True, id="conversion"),
        pytest.param(None, True, id="malformed"),
        pytest.param(UnreachableError("no"), False, id="unreachable"),
    ],
)
async def test_a_kind_that_the_server_fails_to_list_is_closed_after_a_while(error, closed):
    """A webhook that this scheduler is to place is what converts the queues: it waited for them for ever."""
    rig = Watching("auto")
    rig.api.groups |= {"poseidon.io": {"v1": ["queues"]}, "scheduling.run.ai": {"v2": ["queues"]}}
    rig.api.objects[OWN_PATH] = [{"name": "a", "spec": {}}]
    rig.api.answers[KAI.format("v2")] = error or b"<html>"
    rig.pod("p", labels={"kai.scheduler/queue": "q"})
    async with rig.running():
        assert set(rig.tree()) == {"queue/a"}
        await rig.time.elapse(25)
        assert not rig.watches.listed.is_set()
        await rig.time.elapse(35)
        rig.work()
        assert rig.watches.listed.is_set() is closed
        if closed:
            assert rig.problem("p").startswith("queue q is not known: cannot watch queues.scheduling.run.ai: ")
        del rig.api.answers[KAI.format("v2")]
        rig.api.objects[KAI.format("v2")] = [{"name": "q", "spec": {}}]
        await rig.recheck()
        rig.work()
        assert (rig.watches.listed.is_set(), rig.kind, rig.problem("p")) == (True, "kai", "")


async def test_a_queue_that_triggers_a_defect_hides_no_other_and_is_tried_again(caplog):
    rig = Watching("auto")
    rig.api.groups["poseidon.io"] = {"v1": ["queues"]}
    rig.api.objects[OWN_PATH] = [{"name": "a", "spec": {}}]
    put, defects = rig.queues.put, [RuntimeError("odd")]

    def put_or_fail(*arguments):
        if defects:
            raise defects.pop()
        put(*arguments)

    rig.queues.put = put_or_fail  # type: ignore[method-assign]
    rig.api.objects[OWN_PATH] += [{"name": "b", "spec": {}}]
    async with rig.running():
        assert rig.watches.listed.is_set()
        assert set(rig.tree()) == {"queue/b"}
        await rig.recheck()
        assert set(rig.tree()) == {"queue/a", "queue/b"}
    assert "RuntimeError: odd" in caplog.text


async def test_a_kind_that_may_not_be_read_does_not_stop_the_others():
    rig = Watching("auto")
    rig.api.groups |= {"poseidon.io": {"v1": ["queues"]}, "scheduling.run.ai": {"v2": ["queues"]}}
    rig.api.denied.add("/apis/scheduling.run.ai/v2/queues")
    rig.api.objects[OWN_PATH] = [{"name": "a", "spec": {}}]
    async with rig.running():
        assert rig.watches.listed.is_set()
        assert set(rig.tree()) == {"queue/a"}


async def test_pods_that_name_a_queue_that_may_not_be_read_wait():
    rig = Watching("auto")
    rig.api.groups |= {"scheduling.run.ai": {"v2": ["queues"]}}
    rig.api.denied.add("/apis/scheduling.run.ai/v2/queues")
    rig.pod("p", labels={"kai.scheduler/queue": "q"})
    async with rig.running():
        rig.work()
        assert rig.sent("p").queue != 0
        assert rig.problem("p") == (
            "queue q is not known: cannot watch queues.scheduling.run.ai: 403 Forbidden: no; allow list and watch in "
            "the ClusterRole (docs/rbac.md)"
        )


@pytest.mark.parametrize(
    ("path", "known"),
    [
        pytest.param("/apis/scheduling.run.ai/v2/queues", False, id="queues"),
        pytest.param("/apis/kai.scheduler/v1/schedulingshards", True, id="settings"),
    ],
)
async def test_a_kind_that_is_named_must_be_readable_before_anything_is_scheduled(path, known):
    rig = Watching("kai")
    rig.api.groups |= {"scheduling.run.ai": {"v2": ["queues"]}, "kai.scheduler": {"v1": ["schedulingshards"]}}
    rig.api.denied.add(path)
    async with rig.running():
        assert rig.watches.listed.is_set() is known


async def test_who_runs_is_found_out_as_soon_as_it_matters():
    """From the first ClusterQueue on, its pods were scheduled without Kueue for up to half a minute."""
    rig = Watching("auto")
    path = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    rig.api.groups["kueue.x-k8s.io"] = {"v1beta2": ["clusterqueues"]}
    rig.api.there[DEPLOYMENTS] = [KUEUE]
    async with rig.running():
        assert rig.pauses == [RECHECK]
        assert rig.queues.kinds.running == {}
        rig.api.create(path, "q", spec={"namespaceSelector": {}})
        await settle()
        assert rig.queues.kinds.running["kueue"] == "kueue-controller-manager"
        assert rig.kind == "poseidon"
        assert rig.pauses == [RECHECK, RECHECK]


async def test_nothing_is_known_while_the_server_does_not_answer():
    rig = Watching("poseidon")
    rig.api.groups["poseidon.io"] = {"v1": ["queues"]}
    rig.api.fail = [UnreachableError("no")] * 3
    async with rig.running():
        assert not rig.watches.listed.is_set()
        await rig.time.elapse(10)
        assert rig.watches.listed.is_set()


async def test_kueue_admits_where_its_controller_runs():
    rig = Watching("auto")
    path = "/apis/kueue.x-k8s.io/v1beta2/clusterqueues"
    rig.api.groups["kueue.x-k8s.io"] = {"v1beta2": ["clusterqueues"]}
    rig.api.objects[path] = [{"name": "q", "spec": {}}]
    rig.api.there[DEPLOYMENTS] = [KUEUE]
    async with rig.running():
        assert rig.kind == "poseidon"
        assert not rig.queues.tree.queues
        rig.api.there.clear()
        await rig.recheck()
        assert rig.kind == "poseidon"  # it may come back
        rig.watches._others._grace = 0.0
        await rig.recheck()
        assert rig.kind == "kueue"
        assert rig.watches.path_of(CLUSTER_QUEUES, "", "q") == f"{path}/q"


async def test_only_the_config_map_of_yunikorn_is_watched():
    rig = Watching("yunikorn")
    async with rig.running():
        assert rig.api.listed == [("/api/v1/configmaps", "metadata.name=yunikorn-configs")]


async def test_a_file_takes_the_place_of_the_config_map_and_is_read_again(tmp_path):
    file = tmp_path / "queues.yaml"
    file.write_text("partitions: [{queues: [{name: root, queues: [{name: a}]}]}]")
    rig = Watching("yunikorn", file)
    async with rig.running():
        assert rig.api.listed == []
        assert set(rig.tree()) == {"yunikorn/root", "yunikorn/root.a"}
        file.write_text("partitions: [{queues: [{name: root}]}]")
        await rig.recheck()
        assert set(rig.tree()) == {"yunikorn/root"}
        file.unlink()
        await rig.recheck()
        assert set(rig.tree()) == {"yunikorn/root"}


async def test_off_asks_the_server_nothing():
    rig = Watching("off")
    async with rig.running():
        assert rig.watches.listed.is_set()
        assert rig.api.listed == []
