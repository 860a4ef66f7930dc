"""Hours in the life of a busy cluster: apps come and go, nodes change, and the bridge is late. After each round, the
independent check has refused no decision, and the tables are consistent."""

import logging
from collections.abc import Callable
from random import Random
from typing import Any

from firmament_py.engine.engine import Engine
from firmament_py.flow.solver import OrToolsSolver
from firmament_py.model.options import EngineOptions, Migrating, Preempting
from firmament_py.policy import registry
from firmament_py.service.flow_service import FlowService
from protos.gen import flow_pb2
from tests.builders import SECOND_US
from tests.firmament_py.service.busy_cluster import App, BusyCluster, Clock
from tests.firmament_py.service.late_bridge import LateBridge, Waiting, selector

POLICIES = ("load-spreading", "cpu-memory", "bin-packing", "quincy", "octopus", "trivial", "random", "whare-map")
NODES, PODS = 7, 70
QUEUES = (11, 12, 13)
MAX_GANGS = 12
RESTING = 200
"""Steps in which every pod that waits is placed or gets a reason when nothing happens any more."""


class Complaints(logging.Handler):
    """The errors that the engine has logged since the last look."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


class LateSearch:
    """An Execution whose work is done after a while, by the clock."""

    def __init__(self, clock: Clock, seconds: Callable[[], float]) -> None:
        self._clock, self.seconds = clock, seconds
        self.running = False

    def start(self, work: Callable[[], None]) -> None:
        assert not self.running, "one search at a time"
        self.running = True
        self._clock.later(self.seconds(), self._end, work)

    def _end(self, work: Callable[[], None]) -> None:
        work()
        self.running = False


class BusyLife:
    """What happens follows from the seed: features, options of the engine, its policy, how slow all are, and events."""

    def __init__(self, seed: int, *, beside: bool = False, **options: Any) -> None:
        """beside: victims are searched for beside the rounds."""
        self.rng = rng = Random(seed)
        self.seed = seed
        self.clock = Clock()
        self.cluster = BusyCluster(rng, self.clock, slow=rng.choice([0.2, 1.0, 5.0]))
        self.features = {
            name: rng.random() < share
            for name, share in {
                "queues": 0.3,
                "peers": 0.6,
                "gangs": 0.8,
                "topology": 0.5,
                "nodes": 0.8,
                "restarts": 0.5,
                "usage": 0.3,
                "plans": 0.3,
                "labels": 0.5,
            }.items()
        }
        self.options = {
            "preempting": rng.choice([Preempting.WITHIN_BUDGETS] * 3 + [Preempting.BEYOND_BUDGETS, Preempting.OFF]),
            "migrating": rng.choice([Migrating.FOR_WAITING, Migrating.FOR_WAITING, Migrating.ALWAYS, Migrating.NEVER]),
            "migrate_after_us": rng.choice([0, 0, 10 * SECOND_US]),
            "moves_at_once": rng.choice([2, 16, 100]),
            "moves_per_hour": rng.choice([0, 0, 0, 60]),
            "reserve_after_us": rng.choice([0, 30 * SECOND_US, 300 * SECOND_US, None]),
            "improve": rng.choice([0.05, 0.2]),
            **options,
        }
        self.policy = rng.choice(POLICIES)
        slowness = Random(seed)
        self.search = LateSearch(self.clock, lambda: slowness.expovariate(1.0)) if beside else None
        self.engine = self._new_engine()
        self.complaints = Complaints()
        self.tree: flow_pb2.Queues | None = None
        self.bridge = LateBridge(
            rng, self.clock, self.cluster, FlowService(self.engine), self._check, queues=lambda: self.tree
        )
        self._apps = self._jobs = 0
        if self.features["queues"]:
            self.change_queues()
        for number in range(NODES):
            self.cluster.add_node(f"n{number}")

    def _new_engine(self) -> Engine:
        if self.search is not None:  # that of an engine that is gone ends with it
            self.search = LateSearch(self.clock, self.search.seconds)
        policy, solver = registry.load(self.policy, {}), OrToolsSolver()
        return Engine(
            policy, solver, lambda: self.clock.now_us, searching=self.search, options=EngineOptions(**self.options)
        )

    def _check(self, reply: flow_pb2.RoundReply) -> None:
        assert not self.complaints.lines, f"seed {self.seed}: {self.complaints.lines}"
        assert reply.stats.dropped == 0, f"seed {self.seed}: {reply.stats.dropped} dropped"
        self.cluster.counts["placed"] += reply.stats.placed
        self.cluster.counts["preempted"] += reply.stats.preempted
        self.cluster.counts["migrated"] += reply.stats.migrated
        self.cluster.counts["nominated"] += reply.stats.nominated
        self.engine.state.validate()

    # -- time -------------------------------------------------------------------------------------------------

    def live(self, seconds: float) -> None:
        """So many seconds in which things happen, then a minute and more in which only what is under way ends."""
        logger = logging.getLogger("firmament_py.engine")
        logger.addHandler(self.complaints)
        try:
            self.clock.run_until(self.clock.now_us + SECOND_US)
            self.bridge.resync()
            end_us = self.clock.now_us + round(seconds * SECOND_US)
            while self.clock.now_us < end_us:
                pause = self.rng.expovariate(4.0) if self.rng.random() < 0.97 else self.rng.uniform(5, 40)
                self.pass_time(pause)
                self.happen(pause)
            self.come_to_rest()
        finally:
            logger.removeHandler(self.complaints)

    def pass_time(self, seconds: float) -> None:
        self.clock.run_until(self.clock.now_us + round(seconds * SECOND_US))
        self.bridge.work()

    def come_to_rest(self) -> None:
        """Whoever still waits in the end has been told why, or for which node."""
        for _ in range(RESTING):
            self.pass_time(self.rng.uniform(0.5, 2.0))
            waiting = {uid for uid, known in self.bridge.known.items() if known.waits and not known.nominated}
            if all(self.bridge.reported.get(uid) for uid in waiting):
                return
        unreported = {uid for uid in waiting if not self.bridge.reported.get(uid)}
        raise AssertionError(f"seed {self.seed}: pods {sorted(unreported)} wait without a reason")

    def happen(self, seconds: float) -> None:
        rates: dict[Callable[[], None], float] = {
            self.submit_some: 0.25,
            self.end_some: 0.12,
            self.delete_pods: 0.1,
            self.change_nodes: 0.04 * self.features["nodes"],
            self.relabel: 0.05 * self.features["labels"],
            self.change_gang: 0.03 * self.features["gangs"],
            self.change_queues: 0.01 * self.features["queues"],
            self.restart: 0.004 * self.features["restarts"],
            self.report_usage: 0.2 * self.features["usage"],
            self.carry_out: 0.05 * self.features["plans"],
        }
        for event, rate in rates.items():
            if self.rng.random() < rate * min(seconds, 4.0):
                event()

    # -- events -----------------------------------------------------------------------------------------------

    def submit_some(self) -> None:
        if len(self.cluster.pods) > PODS:
            return
        for _ in range(self.rng.choice([1, 1, 2, 5])):
            self._submit()

    def _submit(self) -> None:
        rng = self.rng
        self._apps += 1
        number, kinds = self._apps, ["service"] * 4 + ["batch"] * 2 + ["large"] * 2 + ["bare"]
        kind = rng.choice(kinds + ["gang"] * 3 * self.features["gangs"])
        cpu, memory = rng.choice([1, 1, 2, 3, 4]), rng.choice([1, 2, 4, 8])
        priority = rng.choice([0, 0, 0, 10, 10, 100])
        requests = {"cpu": cpu, "memory": memory}
        if kind == "large":
            requests["cpu"] = rng.choice([6, 8, 10, 14])
        if rng.random() < 0.15:
            requests["gpu"] = rng.choice([1, 2, 4])
        message = flow_pb2.TaskClass(requests=requests, priority=priority, never_preempts=rng.random() < 0.1)
        if rng.random() < 0.2:
            message.expected_seconds = rng.choice([5, 60])
        if self.features["peers"] and rng.random() < 0.35:
            self._constrain(message, number)
        gang = None
        pods = rng.randint(1, 6)
        if kind == "gang" and len(self.cluster.gangs) < MAX_GANGS:
            pods = rng.randint(2, 6)
            gang = self._gang(10_000 + number, pods)
        self._jobs += 1
        app = App(
            number,
            message,
            job=0 if kind == "bare" else self._jobs,
            pods=pods,
            seconds=rng.choice([2, 10, 60]) if kind == "batch" or (gang is not None and rng.random() < 0.6) else 0.0,
            movable=gang is None and kind in ("service", "large") and rng.random() < 0.8,
            unevictable=rng.random() < 0.05,
            gang=gang.id if gang is not None else 0,
            queue=rng.choice([*QUEUES, 99] if rng.random() < 0.1 else QUEUES)
            if self.features["queues"] and rng.random() < 0.6
            else 0,
            grace=rng.choice([0.0, 0.0, 1.0, 10.0]),
            budgeted=gang is None and kind == "service" and rng.random() < 0.5,
        )
        self.cluster.submit(app, gang)

    def _gang(self, number: int, pods: int) -> flow_pb2.Gang:
        rng = self.rng
        minimum = rng.choice([pods, pods, max(pods - 2, 1)])
        gang = flow_pb2.Gang(
            id=number,
            minimum=minimum,
            created_us=self.clock.now_us,
            name=f"gang-{number}",
            disrupted_whole=rng.random() < 0.4,
            maximum=rng.choice([0, 0, 0, pods, minimum]),
        )
        if rng.random() < 0.3:
            gang.roles.add(name="a", minimum=min(1, minimum))
            gang.roles.add(name="b", minimum=0)
        if self.features["topology"] and rng.random() < 0.5:
            gang.topology_key, gang.topology_required = "zone", rng.random() < 0.6
        return gang

    def _constrain(self, message: flow_pb2.TaskClass, number: int) -> None:
        rng, some = self.rng, self.rng.choice([number, number, rng_app(self.rng, number)])
        own = selector(number)
        match rng.choice(["apart", "spread", "near", "token", "avoid", "selector", "prefer", "zone apart"]):
            case "apart":
                message.anti_affinity.add(selector=own, topology_key="kubernetes.io/hostname")
            case "zone apart":
                message.anti_affinity.add(selector=selector(some), topology_key="zone")
            case "spread":
                key = rng.choice(["zone", "kubernetes.io/hostname"])
                message.spread.add(selector=own, topology_key=key, max_skew=1, preferred=rng.random() < 0.3)
            case "near":
                message.affinity.add(selector=selector(some), topology_key="zone")
            case "avoid":
                message.anti_affinity.add(selector=selector(some), topology_key="kubernetes.io/hostname")
            case "token":
                message.tokens.append(f"TCP:{rng.choice([80, 81])}")
            case "selector":
                message.node_selector.add(key="zone", operator="In", values=[rng.choice("abc")])
            case "prefer":
                weight = rng.choice([-50, 50])
                message.preferred_peers.add(term={"selector": own, "topology_key": "zone"}, weight=weight)

    def end_some(self) -> None:
        apps = sorted(self.cluster.apps)
        if apps and (len(self.cluster.pods) > PODS / 2 or self.rng.random() < 0.3):
            self.cluster.end_app(self.rng.choice(apps))

    def delete_pods(self) -> None:
        uids = sorted(self.cluster.pods)
        for uid in self.rng.sample(uids, min(len(uids), self.rng.randint(1, 4))):
            self.cluster.delete(uid)

    def change_nodes(self) -> None:
        names = sorted(self.cluster.nodes)
        event = self.rng.choice(["change", "change", "change", "drain", "remove", "add", "add"])
        if event == "add" or len(names) < 4:
            lacking = sorted({f"n{number}" for number in range(NODES)} - {*names})
            if lacking:
                self.cluster.add_node(self.rng.choice(lacking))
            else:
                for node in self.cluster.nodes.values():
                    if node.cordoned:
                        node.cordoned = False
                        self.cluster.changed("node", node.name)
            return
        name = self.rng.choice(names)
        {"change": self.cluster.change_node, "drain": self.cluster.drain, "remove": self.cluster.remove_node}[event](
            name
        )

    def relabel(self) -> None:
        uids = sorted(self.cluster.pods)
        if uids:
            pod = self.cluster.pods[self.rng.choice(uids)]
            pod.labelled = not pod.labelled
            self.cluster.changed("pod", pod.uid)

    def change_gang(self) -> None:
        ids = sorted(self.cluster.gangs)
        if ids:
            number = self.rng.choice(ids)
            changed = flow_pb2.Gang()
            changed.CopyFrom(self.cluster.gangs[number])
            changed.minimum = max(1, changed.minimum + self.rng.choice([-1, 1]))
            if changed.maximum:
                changed.maximum = max(changed.maximum, changed.minimum)
            self.cluster.gangs[number] = changed
            self.cluster.changed("gang", number)

    def change_queues(self) -> None:
        rng = self.rng
        sharing = rng.choice([flow_pb2.Queues.CLASSICAL, flow_pb2.Queues.FAIR, flow_pb2.Queues.PROPORTIONAL])
        rules = {flow_pb2.Queues.PROPORTIONAL: flow_pb2.Queues.FAIR_SHARE}.get(sharing, flow_pb2.Queues.QUOTA)
        tree = flow_pb2.Queues(sharing=sharing, reclaim_rules=rules)
        tree.flavors.add(name="all")
        victims = flow_pb2.Queue
        if rng.random() < 0.7:
            tree.queues.add(id=1, name="top")
        for number in QUEUES:
            queue = tree.queues.add(
                id=number,
                name=f"queue-{number}",
                parent=1 if tree.queues and tree.queues[0].id == 1 else 0,
                unlimited=True,
                within=rng.choice([victims.NEVER, victims.LOWER_PRIORITY, victims.LOWER_OR_NEWER_EQUAL_PRIORITY]),
                reclaim=rng.choice([victims.NEVER, victims.LOWER_PRIORITY, victims.ANY]),
                borrow_within=rng.choice([victims.NEVER, victims.LOWER_PRIORITY]),
                strict_fifo=rng.random() < 0.2,
                stop=rng.choice([0, 0, 0, 0, 0, 1]),
                weight=rng.choice([1.0, 2.0]),
            )
            quota = queue.quotas.add(flavor="all", resource="cpu", nominal=rng.choice([4, 12, 30]))
            if rng.random() < 0.4:
                quota.borrowing_limit = rng.choice([0, 6])
        self.tree = tree
        self.bridge.queues_changed()

    def restart(self) -> None:
        """The engine restarts, or a reply is lost with its epoch, or the bridge resynchronises by itself."""
        match self.rng.choice(["restart", "epoch", "resync"]):
            case "restart":
                self.engine = self._new_engine()
                self.bridge.service = FlowService(self.engine)
            case "epoch":
                self.engine.epoch += 2
            case "resync":
                self.bridge.resync()

    def report_usage(self) -> None:
        uids = self.rng.sample(sorted(self.cluster.pods), min(len(self.cluster.pods), 10))
        report = flow_pb2.UsageReport(epoch=self.bridge.epoch, task_uid=uids)
        for _ in uids:
            report.tasks.at_us.append(self.clock.now_us)
            report.tasks.cpu.append(self.rng.choice([0.0, 500.0, 4000.0]))
            report.tasks.memory.append(1.0)
        self.bridge.service.ReportUsage(report, Waiting())

    def carry_out(self) -> None:
        """A plan of moves of random pods, for pods that wait or for none."""
        names = sorted(self.bridge.nodes)
        movable = [uid for uid, known in self.bridge.known.items() if known.pod.app.movable and known.pod.node]
        waiting = [uid for uid, known in self.bridge.known.items() if known.waits]
        request = flow_pb2.CarryOutRequest(epoch=self.bridge.epoch, now_us=self.clock.now_us)
        for i, uid in enumerate(self.rng.sample(movable, min(len(movable), 4))):
            node = self.bridge.nodes[self.rng.choice(names)]
            step = request.steps.add(after=[i - 1] if i and self.rng.random() < 0.5 else [])
            step.moves.add(task_uid=uid, to_id=node.id)
            if waiting and self.rng.random() < 0.5:
                holder = self.bridge.nodes.get(self.bridge.known[uid].pod.node, node)
                step.nominated.task_uid.append(self.rng.choice(waiting))
                step.nominated.node.append(0)
                step.nominated.nodes.append(holder.id)
        self.bridge.service.CarryOut(request, Waiting())


def rng_app(rng: Random, number: int) -> int:
    return rng.randint(max(1, number - 6), number)
