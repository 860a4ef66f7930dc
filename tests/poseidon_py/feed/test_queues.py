"""What the engine is sent of queues, and when."""

import asyncio

import pytest

from poseidon_py.describe.queues.model import id_of
from poseidon_py.feed.client import EngineError
from poseidon_py.state.queues.own import QUEUES
from protos.gen import flow_pb2
from tests.poseidon_py.fakes import FakeEngine
from tests.poseidon_py.rig import Rig as BridgeRig
from tests.poseidon_py.settling import turns_until
from tests.poseidon_py.state.queues.rig import queue_object

LABEL = "poseidon.io/queue"


class Engine(FakeEngine):
    """Has queues: refuses those of negative priority, and places no tasks of those that are stopped or unknown."""

    def _clear(self):
        super()._clear()
        self.queues: set[str] = set()
        self.queue_of: dict[int, int] = {}
        self.taking: set[int] = {0}

    def _run_round(self, request):
        for uid, task in self.tasks.items():
            if self.queue_of[uid] not in self.taking:
                task["not_before"] = 2**62
        return super()._run_round(request)

    def _apply(self, update, reply):
        if update.HasField("queues"):
            self.taking = {0, *(queue.id for queue in update.queues.queues if queue.stop == flow_pb2.Queue.NONE)}
            self.queues = {queue.name for queue in update.queues.queues if queue.priority >= 0}
            for queue in update.queues.queues:
                if queue.priority < 0:
                    reply.refused.add(kind="queue", id=str(queue.id), field="priority", reason="is negative; give more")
        columns = update.tasks
        self.queue_of |= dict(zip(columns.uid, columns.queue_id or [0] * len(columns.uid), strict=True))
        super()._apply(update, reply)

    @property
    def trees(self):
        return [update.queues for update in self.updates if update.HasField("queues")]


class Rig(BridgeRig):
    def __init__(self, queues="poseidon"):
        super().__init__(queues=queues)
        self.engine: Engine = Engine()
        self.session._engine = self.feed._engine = self.loop._engine = self.engine
        self.queues = self.store.queues

    async def queue(self, name, **spec):
        self.queues.put("poseidon", QUEUES, queue_object(name, spec))
        await self.settle()

    def queue_of(self, name):
        return self.engine.queue_of[self.store.pods[f"uid-{name}"].task]


async def test_a_resync_has_the_tree_and_the_queues_of_pods():
    rig = Rig()
    rig.queues.put("poseidon", QUEUES, queue_object("a"))
    rig.pod("p", labels={LABEL: "a"}, cpu="64")  # fits nowhere
    rig.pod("plain", cpu="64")
    async with rig:
        assert rig.engine.queues == {"a"}
        assert (rig.queue_of("p"), rig.queue_of("plain")) == (id_of("queue/a"), 0)
        assert len(rig.engine.trees) == 1
        rig.engine.restart()
        rig.session.stale(rig.session.epoch)
        await rig.settle()
        assert rig.engine.queues == {"a"}
        assert rig.queue_of("p") == id_of("queue/a")


async def test_a_changed_tree_is_sent_as_a_whole_and_an_equal_one_is_not():
    async with Rig() as rig:
        await rig.queue("a")
        await rig.queue("b")
        assert rig.engine.queues == {"a", "b"}
        sent = len(rig.engine.trees)
        await rig.queue("b")
        assert len(rig.engine.trees) == sent
        rig.queues.drop("poseidon", QUEUES, "", "a")
        await rig.settle()
        assert rig.engine.queues == {"b"}


async def test_a_pod_whose_queue_changes_is_sent_again_and_others_are_not():
    async with Rig() as rig:
        rig.pod("p", labels={LABEL: "a"}, cpu="64")
        rig.pod("other", labels={LABEL: "b"}, cpu="64")
        await rig.settle()
        before = len(rig.engine.updates)
        rig.pod("p", labels={LABEL: "b"}, cpu="64")
        await rig.settle()
        assert rig.queue_of("p") == id_of("queue/b")
        rows = [uid for update in rig.engine.updates[before:] for uid in update.tasks.uid]
        assert rows == [rig.store.pods["uid-p"].task]


async def test_a_tree_is_sent_again_after_a_failed_call():
    async with Rig() as rig:
        rig.queues.queue._first_delay = 0.0  # a real delay outlasts the iterations that the test waits for
        rig.engine.fail["apply"] = [EngineError("Apply", "INTERNAL", "no")]
        await rig.queue("a")
        assert rig.engine.fail["apply"] == []
        await turns_until(lambda: rig.engine.queues == {"a"})


async def test_what_the_engine_refuses_is_remembered_until_it_takes_it():
    async with Rig() as rig:
        await rig.queue("a", priority=-1)
        rig.pod("p", labels={LABEL: "a"}, cpu="64")
        await rig.settle()
        assert rig.queues.problem_of(rig.store.pods["uid-p"]) == (
            "queue a is not used: priority: is negative; give more"
        )
        await rig.queue("a", priority=1)
        assert rig.queues.problem_of(rig.store.pods["uid-p"]) == ""


async def test_a_pod_in_an_unknown_queue_has_a_message_that_names_it():
    async with Rig() as rig:
        rig.pod("p", labels={LABEL: "none"}, cpu="64")
        rig.pod("q", labels={LABEL: "lost"}, cpu="64")
        await rig.settle()
        tasks = [rig.store.pods[f"uid-{name}"].task for name in ("p", "q")]
        rig.unscheduled.clear()
        unknown = flow_pb2.Reason(kind=flow_pb2.Reason.QUEUE_UNKNOWN)
        rig.loop._unscheduled([flow_pb2.Unscheduled(task_uid=tasks, nodes=1, reasons=[unknown])])
        assert rig.unscheduled == [
            (name, f"queue {queue} does not exist: create it or change label {LABEL}")
            for name, queue in (("p", "none"), ("q", "lost"))
        ]


async def test_a_pod_is_never_sent_before_a_change_of_the_queues_that_came_before_it():
    """A pod that was created right after `stopPolicy: Hold`, a lowered quota or the deletion of its queue was bound."""
    async with Rig() as rig:
        await rig.queue("a")
        rig.queues.put("poseidon", QUEUES, queue_object("a", {"stop": "hold"}))
        rig.pod("p", labels={LABEL: "a"}, cpu="64")
        sent = len(rig.engine.updates)
        await rig.settle()
        updates = rig.engine.updates[sent:]
        first = next(update for update in updates if update.tasks.uid)
        assert [queue.stop for queue in rig.engine.trees[-1].queues] == [flow_pb2.Queue.HOLD]
        assert any(update.HasField("queues") for update in updates[: updates.index(first) + 1])
        assert len([update for update in updates if update.HasField("queues")]) == 1


async def test_a_pod_takes_the_tree_along_while_the_worker_of_queues_is_busy():
    async with Rig() as rig:
        await rig.queue("a")
        rig.queues.queue._working.add("tree")  # it has not come back yet
        rig.queues.put("poseidon", QUEUES, queue_object("a", {"stop": "hold"}))
        rig.pod("p", labels={LABEL: "a"}, cpu="64")
        await rig.settle()
        (update,) = [update for update in rig.engine.updates if update.tasks.uid]
        assert [queue.stop for queue in update.queues.queues] == [flow_pb2.Queue.HOLD]


async def test_an_older_tree_does_not_arrive_after_a_newer_one():
    async with Rig() as rig:
        await rig.queue("a")
        apply, arrived = rig.engine.apply, asyncio.Event()

        async def slow(update):
            if update.HasField("queues") and not update.tasks.uid:
                await arrived.wait()
            return await apply(update)

        rig.engine.apply = slow
        rig.queues.put("poseidon", QUEUES, queue_object("b"))
        await rig.settle()
        rig.queues.put("poseidon", QUEUES, queue_object("c"))
        rig.pod("p", labels={LABEL: "a"}, cpu="64")
        await rig.settle()
        arrived.set()
        await rig.settle()
        assert rig.engine.queues == {"a", "b", "c"}
        assert not rig.queues.is_news(rig.session.epoch)


@pytest.mark.parametrize("closing", [{"stop": "hold"}, {"limit": {"cpu": "lots"}}, None], ids=str)
async def test_placements_of_a_round_during_which_their_queue_is_closed_are_given_back(closing):
    async with Rig() as rig:
        await rig.queue("a")

        def close(reply):
            if closing is None:
                rig.queues.drop("poseidon", QUEUES, "", "a")
            else:
                rig.queues.put("poseidon", QUEUES, queue_object("a", closing))

        rig.engine.after_round = close
        rig.pod("p", labels={LABEL: "a"})
        rig.pod("plain")
        await rig.settle()
        assert rig.kube.asked == ["plain"]
        assert (rig.state("p"), rig.state("plain")) == ("waiting", "bound")


async def test_off_sends_no_tree():
    async with Rig("off") as rig:
        rig.pod("p", labels={LABEL: "a"})
        await rig.settle()
        assert rig.engine.trees == []
        assert rig.queue_of("p") == 0
