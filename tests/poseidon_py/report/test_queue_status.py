"""The status of objects that declare queues, and the events on them."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace

import pytest

from poseidon_py.describe.queues.model import id_of
from poseidon_py.kube.client import ApiError, ConflictError, NotFoundError
from poseidon_py.report.queue_bodies import body_of
from poseidon_py.report.queue_status import QueueStatusWriter
from poseidon_py.report.queue_use import QueueUse
from poseidon_py.state.queues import elastic_quota, kai, kueue, own, volcano
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.queues.rig import Rig

USE = QueueUse(
    used={("f", "cpu"): 1500, ("f", "memory"): 2**30, ("g", "cpu"): 500},
    borrowed={("f", "cpu"): 250},
    pending=3,
    running=2,
    share=0.25,
    fair_share={"cpu": 4000},
    requested={"cpu": 6000},
)


@pytest.mark.parametrize(
    ("resource", "body"),
    [
        pytest.param(
            kueue.CLUSTER_QUEUES,
            {
                key: [
                    {
                        "name": "f",
                        "resources": [
                            {"name": "cpu", "total": "1500m", "borrowed": "250m"},
                            {"name": "memory", "total": "1Gi", "borrowed": "0"},
                        ],
                    },
                    {"name": "g", "resources": [{"name": "cpu", "total": "500m", "borrowed": "0"}]},
                ]
                for key in ("flavorsReservation", "flavorsUsage")
            }
            | {
                "pendingWorkloads": 3,
                "reservingWorkloads": 2,
                "admittedWorkloads": 2,
                "fairSharing": {"weightedShare": 250},
            },
            id="kueue",
        ),
        pytest.param(kai.QUEUES, {"allocated": {"cpu": "2", "memory": "1Gi"}, "requested": {"cpu": "6"}}, id="kai"),
        pytest.param(
            volcano.QUEUES, {"allocated": {"cpu": "2", "memory": "1Gi"}, "pending": 3, "running": 2}, id="volcano"
        ),
        pytest.param(
            own.QUEUES,
            {
                "used": {"cpu": "2", "memory": "1Gi"},
                "borrowed": {"cpu": "250m"},
                "pending": 3,
                "running": 2,
                "share": 0.25,
                "fairShare": {"cpu": "4"},
            },
            id="own",
        ),
        pytest.param(
            kueue.LOCAL_QUEUES,
            {
                key: [
                    {
                        "name": "f",
                        "resources": [{"name": "cpu", "total": "1500m"}, {"name": "memory", "total": "1Gi"}],
                    },
                    {"name": "g", "resources": [{"name": "cpu", "total": "500m"}]},
                ]
                for key in ("flavorsReservation", "flavorsUsage")
            }
            | {"pendingWorkloads": 3, "reservingWorkloads": 2, "admittedWorkloads": 2},
            id="local queue",
        ),
        pytest.param(elastic_quota.QUOTAS, {}, id="elastic quota"),
    ],
)
def test_the_status_is_that_of_the_kind(resource, body):
    assert body_of(resource, USE) == body


def test_the_first_version_of_a_local_queue_has_another_name():
    assert (
        body_of(kueue.LOCAL_QUEUES, USE, "v1beta1")["flavorUsage"] == body_of(kueue.LOCAL_QUEUES, USE)["flavorsUsage"]
    )
    assert "flavorsUsage" not in body_of(kueue.LOCAL_QUEUES, USE, "v1beta1")


def test_the_status_of_a_local_queue_has_what_it_used():
    use = replace(USE, past={"cpu": 1500.4, "memory": 2.0**30}, past_at="2026-01-01T00:00:00Z")
    assert body_of(kueue.LOCAL_QUEUES, use)["fairSharing"] == {
        "weightedShare": 0,
        "admissionFairSharingStatus": {
            "consumedResources": {"cpu": "1500m", "memory": "1Gi"},
            "lastUpdate": "2026-01-01T00:00:00Z",
        },
    }


class Api:
    """Objects by path; `fail`: errors of the next requests."""

    def __init__(self):
        self.conditions: dict[str, list] = {}
        self.patches: list[tuple[str, dict]] = []
        self.events: list[dict] = []
        self.fail: list[Exception] = []

    def _check(self):
        if self.fail:
            raise self.fail.pop(0)

    async def call(self, verb, path):
        self._check()
        return json.dumps({"status": {"conditions": self.conditions.get(path, [])}}).encode()

    async def create(self, path, body, timeout=30.0):
        self._check()
        self.events.append(body)
        return b""

    async def merge(self, path, patch):
        self._check()
        self.patches.append((path, patch["status"]))
        if "conditions" in patch["status"]:
            self.conditions[path.removesuffix("/status")] = patch["status"]["conditions"]
        return b""


class Writing(Rig):
    def __init__(self, kind):
        super().__init__(kind)
        self.api = Api()
        self.leads = True
        self.binds = SimpleNamespace(busy=False, saturated=False)
        self.slept = 0
        self.writer = QueueStatusWriter(
            self.api,
            self.queues,
            lambda resource, namespace, name: f"/apis/{resource.group}/v9/{namespace}/{resource.plural}/{name}",
            self.binds,
            lambda: self.leads,
            sleep=self._sleep,
        )
        self.queues.reported = self.writer.changed

    async def _sleep(self, seconds):
        self.slept += 1
        await asyncio.sleep(0)

    async def written(self):
        """Runs the writer until it waits."""
        task = asyncio.create_task(self.writer.run())
        await settle()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        patches, self.api.patches = self.api.patches, []
        return {path.rpartition("/queues/")[2].removesuffix("/status"): status for path, status in patches}

    def messages(self):
        return [(event["involvedObject"]["name"], event["message"]) for event in self.api.events]


async def test_figures_are_written_when_they_change_and_only_then():
    rig = Writing("poseidon")
    rig.put("Queue", "a")
    rig.put("Queue", "b")
    found = await rig.written()
    assert {name: [each["status"] for each in status["conditions"]] for name, status in found.items()} == {
        "a": ["True"],
        "b": ["True"],
    }
    rig.writer.note({id_of("queue/a"): USE})
    assert await rig.written() == {"a": body_of(own.QUEUES, USE)}
    rig.writer.note({id_of("queue/a"): USE})
    rig.put("Queue", "b")
    assert await rig.written() == {}
    rig.writer.note({id_of("queue/a"): QueueUse(), id_of("queue/b"): QueueUse()})
    assert set(await rig.written()) == {"a", "b"}


async def test_conditions_of_others_are_kept_and_the_time_changes_with_the_status_only():
    rig = Writing("poseidon")
    path = "/apis/poseidon.io/v9//queues/a"
    other = {"type": "Other", "status": "True"}
    since = "2020-01-01T00:00:00Z"
    rig.api.conditions[path] = [
        other,
        {"type": "Active", "status": "True", "reason": "Old", "message": "", "lastTransitionTime": since},
    ]
    rig.put("Queue", "a")
    await rig.written()
    ready = {"type": "Active", "status": "True", "reason": "Ready", "message": "takes pods"}
    assert rig.api.conditions[path] == [other, {**ready, "lastTransitionTime": since}]
    rig.put("Queue", "a", {"stop": "hold"})
    await rig.written()
    stopped = rig.api.conditions[path][1]
    assert (stopped["status"], stopped["reason"], stopped["message"]) == ("False", "Stopped", "spec.stop is hold")
    assert stopped["lastTransitionTime"] != since


async def test_problems_are_events_once_and_part_of_the_condition():
    rig = Writing("poseidon")
    rig.put("Queue", "a", {"parent": "none", "weight": "x"})
    found = await rig.written()
    parent = "spec.parent: queue none does not exist; create it or name another"
    weight = "spec.weight: 'x' is not valid and is ignored; give a number of at least 0"
    (condition,) = found["a"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == (
        "False",
        "Misconfigured",
        f"{parent}; {weight}",
    )
    assert rig.messages() == [("a", parent), ("a", weight)]
    involved = rig.api.events[0]["involvedObject"]
    assert (involved["apiVersion"], involved["kind"]) == ("poseidon.io/v9", "Queue")
    rig.writer.changed()
    await rig.written()
    assert len(rig.api.events) == 2


async def test_what_has_no_effect_is_one_event_of_another_reason():
    rig = Writing("kueue")
    tolerations = [{"key": "spot", "operator": "Exists", "effect": "NoSchedule"}]
    rig.put("ResourceFlavor", "f", {"tolerations": tolerations, "nodeTaints": tolerations, "nodeLabels": "x"})
    await rig.written()
    events = {event["reason"]: event["message"] for event in rig.api.events if event["involvedObject"]["name"] == "f"}
    assert len(rig.api.events) == 2
    assert events["InvalidQueue"].startswith("spec.nodeLabels: 'x' is not valid")
    for field in ("spec.tolerations: counts for nodeTaints alone", "spec.nodeTaints[].operator"):
        assert events["NotHonoured"].count(field) == 1
    assert "are not added to pods here" not in events["NotHonoured"]
    rig.writer.changed()
    await rig.written()
    assert len(rig.api.events) == 2


async def test_a_kind_without_conditions_has_events_in_its_namespace():
    rig = Writing("elasticquota")
    rig.put("ElasticQuota", "q", {"max": {"cpu": "x"}}, namespace="team")
    assert await rig.written() == {}
    (event,) = rig.api.events
    assert event["metadata"]["namespace"] == event["involvedObject"]["namespace"] == "team"


async def test_a_standby_writes_nothing_until_it_leads():
    rig = Writing("poseidon")
    rig.leads = False
    rig.put("Queue", "a", {"weight": "x"})
    assert (await rig.written(), rig.api.events) == ({}, [])
    rig.leads = True
    rig.writer.changed()
    assert set(await rig.written()) == {"a"}
    assert len(rig.api.events) == 1


async def test_the_status_is_not_ours_while_the_scheduler_of_the_kind_runs():
    rig = Writing("volcano")
    rig.queues.set_running("volcano", "volcano-scheduler")
    rig.put("VolcanoQueue", "a", {"weight": 0})
    rig.writer.note({id_of("volcano/a"): USE})
    assert await rig.written() == {}
    assert len(rig.api.events) == 1


@pytest.mark.parametrize(
    "error", [ApiError(500, "Internal", "no"), ConflictError(409, "Conflict", "no")], ids=["500", "conflict"]
)
async def test_a_failed_request_is_repeated(error):
    rig = Writing("poseidon")
    rig.put("Queue", "a")
    rig.put("Queue", "b")
    rig.api.fail = [error]
    assert set(await rig.written()) == {"a", "b"}


async def test_a_deleted_object_is_not_written_again():
    rig = Writing("poseidon")
    rig.put("Queue", "a")
    rig.api.fail = [NotFoundError(404, "NotFound", "no")]
    assert await rig.written() == {}


async def test_binds_come_first():
    rig = Writing("poseidon")
    rig.put("Queue", "a")
    rig.binds.busy = True
    waited = asyncio.create_task(rig.writer.run())
    for _ in range(20):
        await asyncio.sleep(0)
    assert rig.api.patches == []
    rig.binds.busy = False
    await settle()
    assert len(rig.api.patches) == 1
    waited.cancel()
