"""A bridge on a busy machine, at the level of messages: it learns of changes late, and of different objects in any
order, sends rows in random batches, loses replies, and carries decisions out late or not at all. It follows the rules
of poseidon_py (feed/, rounds/, bind/, preempt/), in plain Python and virtual time."""

import zlib
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from random import Random
from typing import Any

from firmament_py.service.flow_service import FlowService
from protos.gen import flow_pb2
from tests.builders import SECOND_US
from tests.firmament_py.service.busy_cluster import BusyCluster, Clock, Node, Pod

Row = tuple[Any, ...]
"""What the engine should have of a pod, as `_COLUMNS`."""

_COLUMNS = (
    *("class_id", "node", "profile_id", "leaving", "gang_id", "role", "started_us", "nominated", "unevictable"),
    *("movable", "queue_id"),
)


class Waiting:
    """A caller that waits."""

    def is_active(self) -> bool:
        return True


@dataclass
class Known:
    """What the bridge knows of a pod. assumed: the name of the node that it is being bound to."""

    pod: Pod
    assumed: str = ""
    nominated: str = ""
    preempting: bool = False
    migrating: bool = False
    spared: bool = False
    refused: bool = False
    sent: Row | None = None
    resend: bool = False

    @property
    def waits(self) -> bool:
        return not (self.pod.node or self.assumed or self.pod.deleting)

    @property
    def leaving(self) -> bool:
        return self.pod.deleting or self.preempting or self.migrating


@dataclass
class LateBridge:
    """checked: called after each round of the service."""

    rng: Random
    clock: Clock
    cluster: BusyCluster
    service: FlowService
    checked: Callable[[flow_pb2.RoundReply], None]
    queues: Callable[[], flow_pb2.Queues | None] = lambda: None
    epoch: int = 0
    known: dict[int, Known] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    gangs: dict[int, flow_pb2.Gang] = field(default_factory=dict)
    budgets: dict[int, int] = field(default_factory=dict)
    gone: dict[int, str] = field(default_factory=dict)
    rejections: dict[int, tuple[int, flow_pb2.Rejection]] = field(default_factory=dict)
    reported: dict[int, int] = field(default_factory=dict)
    """Uid of a pod that waits -> number of reasons in its last report."""
    _dirty: dict[str, dict[Any, None]] = field(default_factory=dict)
    _last_us: dict[str, int] = field(default_factory=dict)
    _classes: set[int] = field(default_factory=set)
    _profiles: set[int] = field(default_factory=set)
    _gangs_sent: dict[int, flow_pb2.Gang] = field(default_factory=dict)
    _in_flight: frozenset[int] = frozenset()
    _acknowledged: int = 0
    _round_runs: bool = False
    _changed: bool = True
    _wake_us: int = 0
    _last_round_us: int = 0
    _epoch_of_rounds: int = 0

    def __post_init__(self) -> None:
        self._dirty = {kind: {} for kind in ("pod", "node", "budget", "gang", "queues")}
        self.cluster.watchers.append(self._notice)

    # -- watches ----------------------------------------------------------------------------------------------

    def _notice(self, kind: str, key: Any) -> None:
        """Something has changed; the watch of its kind reports that later, but in order."""
        of = self.cluster
        objects: dict[str, dict[Any, Any]] = {"pod": of.pods, "node": of.nodes, "budget": of.allowed, "gang": of.gangs}
        found = copy(objects[kind].get(key)) if kind in objects else None
        due = self.clock.now_us + round(self.cluster.pause(0.03) * SECOND_US)
        self._last_us[kind] = max(self._last_us.get(kind, 0), due)
        take: dict[str, Callable[..., None]] = {"pod": self._see_pod, "node": self._see_node}
        seconds = (self._last_us[kind] - self.clock.now_us) / SECOND_US
        self.clock.later(seconds, take.get(kind, self._see), kind, key, found)

    def _see(self, kind: str, key: int, found: Any) -> None:
        stores: dict[str, dict[int, Any]] = {"budget": self.budgets, "gang": self.gangs}
        store = stores[kind]
        if found is None:
            store.pop(key, None)
        else:
            store[key] = found
        self._dirty[kind][key] = None

    def _see_pod(self, kind: str, uid: int, found: Pod | None) -> None:
        known = self.known.get(uid)
        self._dirty["pod"][uid] = None
        if found is None:
            if known is not None:
                del self.known[uid]
                self.gone[uid] = known.pod.outcome
            self.reported.pop(uid, None)
            return
        if known is None:
            self.known[uid] = Known(found)
            return
        known.pod = found
        if found.node:
            known.assumed = known.nominated = ""
            self.reported.pop(uid, None)

    def _see_node(self, kind: str, name: str, found: Node | None) -> None:
        before = self.nodes.pop(name, None)
        if before is not None and (found is None or found.id != before.id):
            self._dirty["node"][before.id] = None
            for uid, known in self.known.items():
                if known.nominated == name:
                    known.nominated = ""
                    self._touch(uid)
        if found is not None:
            self.nodes[name] = found
            self._dirty["node"][name] = None
            if before is None or before.id != found.id:
                for uid, known in self.known.items():
                    if name in (known.pod.node, known.nominated):
                        self._touch(uid)

    def _touch(self, uid: int, *, resend: bool = False) -> None:
        if uid in self.known:
            self.known[uid].resend |= resend
            self._dirty["pod"][uid] = None

    def _id_of(self, name: str) -> str:
        return self.nodes[name].id if name in self.nodes else f"unknown-{name}"

    # -- rows -------------------------------------------------------------------------------------------------

    def _target(self, known: Known, *, fresh: bool = False) -> Row | None:
        pod, app = known.pod, known.pod.app
        shared = (app.number if pod.labelled else 10**6, app.gang, pod.role if app.gang else 0)
        cls = class_id(app.message)
        if pod.node:
            at, started = self._id_of(pod.node), pod.started_us or pod.created_us
            unevictable, movable = app.unevictable or known.spared, self._movable(known)
            profile, gang, role = shared
            return cls, at, profile, known.leaving, gang, role, started, "", unevictable, movable, app.queue
        at = ""
        if known.assumed and (fresh or known.sent is not None):
            at = self._id_of(known.assumed) if fresh or known.sent is None else known.sent[1]
        elif pod.deleting:
            return None
        profile, gang, role = shared
        nominated = self._id_of(known.nominated) if known.nominated in self.nodes and not known.assumed else ""
        return cls, at, profile, False, gang, role, pod.created_us if at else 0, nominated, False, False, app.queue

    def _movable(self, known: Known) -> bool:
        app = known.pod.app
        return app.movable and not (app.gang or known.spared or known.refused)

    def _add_rows(self, update: flow_pb2.Update, rows: dict[int, Row]) -> None:
        nodes: dict[str, int] = {}
        tasks = update.tasks
        for uid, row in rows.items():
            known = self.known[uid]
            app = known.pod.app
            tasks.uid.append(uid)
            tasks.job_id.append(app.job)
            tasks.created_us.append(known.pod.created_us)
            tasks.name.append(f"ns/pod-{uid}")
            for column, value in zip(_COLUMNS, row, strict=True):
                if column in ("node", "nominated"):
                    value = nodes.setdefault(value, len(nodes) + 1) if value else 0
                getattr(tasks, column).append(value)
            cls, profile, gang = row[0], row[2], row[4]
            if cls not in self._classes and cls not in {each.id for each in update.classes}:
                update.classes.add().CopyFrom(app.message)
                update.classes[-1].id = cls
            if profile not in self._profiles and profile not in {each.id for each in update.profiles}:
                update.profiles.add(id=profile, namespace="ns", labels={"app": str(profile)})
            message = self.gangs.get(gang)
            if message not in (None, self._gangs_sent.get(gang)) and gang not in {each.id for each in update.gangs}:
                update.gangs.append(message)
        tasks.nodes.extend(nodes)

    def _note_sent(self, update: flow_pb2.Update, rows: dict[int, Row], reply: flow_pb2.UpdateReply) -> None:
        assert not reply.refused, reply.refused
        self._classes |= {each.id for each in update.classes} - {*reply.unknown_classes}
        self._profiles |= {each.id for each in update.profiles}
        for gang in update.gangs:
            if gang.id in self.gangs:
                self._gangs_sent[gang.id] = self.gangs[gang.id]
        self._classes -= {*reply.unknown_classes}
        self._profiles -= {*reply.unknown_profiles}
        for gang_id in reply.unknown_gangs:
            self._gangs_sent.pop(gang_id, None)
        unknown = {*reply.unknown_classes}, {*reply.unknown_profiles}, {*reply.unknown_gangs}
        for uid, row in rows.items():
            if uid not in self.known:
                continue
            lost = row[0] in unknown[0] or row[2] in unknown[1] or row[4] in unknown[2]
            self.known[uid].sent = None if lost else row
            if lost:
                self._touch(uid)

    # -- calls ------------------------------------------------------------------------------------------------

    def work(self) -> None:
        """Sends some of what has changed, in random order, and has rounds run."""
        feeds = [self._feed_nodes, self._feed_pods, self._feed_others]
        self.rng.shuffle(feeds)
        for feed in feeds:
            if self.rng.random() < 0.7:
                feed()
        due = self._changed or (0 < self._wake_us <= self.clock.now_us)
        due |= self.clock.now_us - self._last_round_us > 10 * SECOND_US
        if due and not self._round_runs and self.rng.random() < 0.8:
            self._round()

    def _some(self, kind: str) -> list[Any]:
        keys = [key for key in self._dirty[kind] if kind != "pod" or key not in self._in_flight]
        share = self.rng.choice([0.3, 0.7, 1.0, 1.0])
        chosen = [key for key in keys if self.rng.random() < share]
        for key in chosen:
            del self._dirty[kind][key]
        self.rng.shuffle(chosen)
        return chosen

    def _apply(self, update: flow_pb2.Update) -> flow_pb2.UpdateReply:
        update.epoch = self.epoch
        reply = self.service.Apply(flow_pb2.Update.FromString(update.SerializeToString()), Waiting())
        self._changed |= not reply.quiet
        return reply

    def _feed_pods(self) -> None:
        keys = self._some("pod")
        update, rows, removed, rejected = flow_pb2.Update(), dict[int, Row](), list[int](), dict[int, Any]()
        gone = [uid for uid in keys if uid in self.gone]
        for uid in gone:
            update.removed_tasks.append(uid)
            if self.gone[uid] == "succeeded":
                update.succeeded_tasks.append(uid)
            elif self.gone[uid] == "failed":
                update.failed_tasks.append(uid)
        for uid in keys:
            known = self.known.get(uid)
            if known is None:
                self.rejections.pop(uid, None)
                continue
            goal = self._target(known)
            if goal != known.sent or (known.resend and goal is not None):
                if goal is None:
                    known.nominated = ""
                    update.removed_tasks.append(uid)
                    removed.append(uid)
                else:
                    if known.sent is not None and known.sent[1] and not goal[1]:
                        update.removed_tasks.append(uid)
                    rows[uid] = goal
            known.resend = False
            rejection = self.rejections.pop(uid, None)
            if rejection is not None and rejection[0] == self.epoch and not known.pod.node:
                rejected[uid] = rejection
                update.rejections.append(rejection[1])
        if not (update.removed_tasks or rows or rejected):
            return
        self._add_rows(update, rows)
        with_round = not self._round_runs and self.rng.random() < 0.5
        if with_round:
            update.round.CopyFrom(self._request())
        reply = self._apply(update)
        if reply.status == flow_pb2.STALE_EPOCH:
            self._dirty["pod"] |= dict.fromkeys(keys)
            self.resync()
            return

        def sent() -> None:
            for uid in gone:
                del self.gone[uid]
            for uid in removed:
                if uid in self.known:
                    self.known[uid].sent = None
            self._note_sent(update, rows, reply)

        def lost() -> None:
            self.rejections = rejected | self.rejections
            for uid in keys:
                self._touch(uid, resend=uid in rows)
            self._dirty["pod"] |= dict.fromkeys(uid for uid in gone if uid in self.gone)

        if with_round:
            self._in_flight = frozenset(keys)
            self._await(reply.round, sent, lost)
        elif self.rng.random() < 0.02:
            lost()
        else:
            sent()

    def _feed_nodes(self) -> None:
        update = flow_pb2.Update()
        for key in self._some("node"):
            if key in self.nodes:
                update.nodes.append(self.nodes[key].message())
            else:
                update.removed_nodes.append(key)
        if (update.nodes or update.removed_nodes) and self._apply(update).status == flow_pb2.STALE_EPOCH:
            self._dirty["node"] |= dict.fromkeys(update.removed_nodes)
            self.resync()

    def _feed_others(self) -> None:
        update = flow_pb2.Update()
        for key in self._some("budget"):
            if key in self.budgets:
                update.budgets.append(budget(key, self.budgets[key]))
            else:
                update.removed_budgets.append(key)
        for key in self._some("gang"):
            if key not in self.gangs:
                update.removed_gangs.append(key)
                self._gangs_sent.pop(key, None)
            elif key in self._gangs_sent:
                update.gangs.append(self.gangs[key])
                self._gangs_sent[key] = self.gangs[key]
        if self._some("queues") and (tree := self.queues()) is not None:
            update.queues.CopyFrom(tree)
        if update.ByteSize() and self._apply(update).status == flow_pb2.STALE_EPOCH:
            self.resync()

    def queues_changed(self) -> None:
        self._dirty["queues"][0] = None

    def resync(self) -> None:
        """Sends everything, unless a call is under way: its reply is lost then."""
        self._classes, self._profiles, self._gangs_sent = set(), set(), {}
        first = flow_pb2.Update(budgets=[budget(*each) for each in self.budgets.items()])
        first.nodes.extend(node.message() for node in self.nodes.values())
        if (tree := self.queues()) is not None:
            first.queues.CopyFrom(tree)
        second, rows = flow_pb2.Update(), dict[int, Row]()
        for uid, known in self.known.items():
            known.resend, known.sent = False, self._target(known, fresh=True)
            if known.sent is not None:
                rows[uid] = known.sent
        self._add_rows(second, rows)
        reply = self.service.Resync(iter([first, second, flow_pb2.Update(complete=True)]), Waiting())
        self.epoch = reply.epoch
        self._in_flight, self._round_runs, self._changed = frozenset(), False, True
        self._note_sent(second, rows, reply)
        self.cluster.counts["resyncs"] += 1

    # -- rounds -----------------------------------------------------------------------------------------------

    def _request(self) -> flow_pb2.RoundRequest:
        if self._epoch_of_rounds != self.epoch:
            self._epoch_of_rounds, self._acknowledged = self.epoch, 0
        self._changed = False
        self._last_round_us = self.clock.now_us
        return flow_pb2.RoundRequest(epoch=self.epoch, acknowledged=self._acknowledged, now_us=self.clock.now_us)

    def _round(self) -> None:
        reply = self.service.Round(self._request(), Waiting())
        if reply.status == flow_pb2.STALE_EPOCH:
            self.resync()
            return
        self._await(reply, lambda: None, lambda: None)

    def _await(self, reply: flow_pb2.RoundReply, sent: Callable[[], None], lost: Callable[[], None]) -> None:
        """The reply of a round arrives later, or never; no other round begins before."""
        self.checked(reply)
        self.cluster.counts["rounds"] += 1
        self._round_runs = True
        epoch, arrives = self.epoch, self.rng.random() > 0.04

        def done() -> None:
            if self.epoch != epoch:
                return
            self._round_runs, self._in_flight = False, frozenset()
            if not arrives:
                self.cluster.counts["lost replies"] += 1
                self._changed = True
                lost()
                return
            sent()
            self._process(reply)

        self.clock.later(self.cluster.pause(0.1), done)

    def _process(self, reply: flow_pb2.RoundReply) -> None:
        self._wake_us = reply.wake_us
        placed, names = reply.placed, {node.id: name for name, node in self.nodes.items()}
        for uid, at in zip(placed.task_uid, placed.node, strict=True):
            known, node_id = self.known.get(uid), placed.nodes[at]
            if known is None:
                continue
            if node_id not in names or not known.waits:
                self._reject(uid, node_id, 0)
            else:
                known.assumed = names[node_id]
                self._bind_later(uid, known.assumed, node_id)
        self._decide(reply, names)
        if reply.round:
            self._acknowledged = reply.round
        for group in reply.unscheduled:
            for uid in group.task_uid:
                self.reported[uid] = len(group.reasons)

    def _reject(self, uid: int, node_id: str, not_before_us: int) -> None:
        self.rejections[uid] = (
            self.epoch,
            flow_pb2.Rejection(task_uid=uid, node_id=node_id, not_before_us=not_before_us),
        )
        self._touch(uid)
        self.cluster.counts["rejected"] += 1

    def _bind_later(self, uid: int, name: str, node_id: str) -> None:
        def bind() -> None:
            known = self.known.get(uid)
            if known is None or known.assumed != name:
                return
            if self.rng.random() < 0.95 and self.cluster.bind(uid, name):
                self.cluster.counts["bound"] += 1
            else:
                known.assumed = ""
                self._reject(uid, node_id, self.clock.now_us + round(self.cluster.pause(0.5) * SECOND_US))

        self.clock.later(self.cluster.pause(0.1), bind)

    def _decide(self, reply: flow_pb2.RoundReply, names: dict[str, str]) -> None:
        for uid, at in zip(reply.nominated.task_uid, reply.nominated.node, strict=True):
            if uid in self.known:
                self._touch(uid, resend=True)
                fits = self.known[uid].waits and reply.nominated.nodes[at] in names
                self.known[uid].nominated = names[reply.nominated.nodes[at]] if fits else ""
        for uid in reply.unnominated:
            if uid in self.known:
                self._touch(uid, resend=True)
                self.known[uid].nominated = ""
        for uid, other in zip(reply.preempted.task_uid, reply.preempted.preemptor_uid, strict=True):
            known, preemptor = self.known.get(uid), self.known.get(other)
            if known is None:
                continue
            self._touch(uid, resend=True)
            if not known.pod.node or known.pod.deleting or known.preempting:
                continue
            if preemptor is not None and preemptor.waits:
                known.preempting = True
                self.clock.later(self.cluster.pause(0.2), self._delete, uid, other)
        for uid, at in zip(reply.migrated.task_uid, reply.migrated.node, strict=True):
            known = self.known.get(uid)
            if known is None:
                continue
            self._touch(uid, resend=True)
            target = names.get(reply.migrated.nodes[at])
            if known.pod.node and not known.leaving and target not in (None, known.pod.node) and self._movable(known):
                known.migrating = True
                self.clock.later(self.cluster.pause(0.2), self._move, uid, 3)

    def _delete(self, uid: int, preemptor: int) -> None:
        """Deletes a victim, if its preemptor still waits; now and then the API server refuses that."""
        known, other = self.known.get(uid), self.known.get(preemptor)
        if known is None or known.pod.deleting:
            return
        needed = other is not None and other.waits
        if needed and self.rng.random() < 0.85:
            self.cluster.delete(uid)
            self.cluster.counts["victims"] += 1
            return
        known.preempting = False
        self._touch(uid, resend=True)
        if needed:
            self._spare(known, "spared")
            self.cluster.counts["refused victims"] += 1

    def _move(self, uid: int, attempts: int) -> None:
        known = self.known.get(uid)
        if known is None or known.pod.deleting:
            return
        if known.migrating and self.rng.random() < 0.9 and self.cluster.evict(uid):
            self.cluster.counts["moves"] += 1
        elif attempts:
            self.clock.later(self.cluster.pause(1.0), self._move, uid, attempts - 1)
        else:
            known.migrating = False
            self._touch(uid, resend=True)
            self._spare(known, "refused")
            self.cluster.counts["refused moves"] += 1

    def _spare(self, known: Known, how: str) -> None:
        """The pod is not chosen again for a while."""
        setattr(known, how, True)
        uid = known.pod.uid

        def again() -> None:
            setattr(known, how, False)
            self._touch(uid)

        self.clock.later(self.rng.uniform(5, 60), again)


def class_id(message: flow_pb2.TaskClass) -> int:
    """Classes of equal content are one."""
    return zlib.crc32(message.SerializeToString(deterministic=True)) + 1


def selector(number: int) -> flow_pb2.PeerSelector:
    """Pods with the labels of an app."""
    labels = [{"key": "app", "operator": "In", "values": [str(number)]}]
    return flow_pb2.PeerSelector(namespaces=["ns"], labels=labels)


def budget(number: int, allowed: int) -> flow_pb2.Budget:
    return flow_pb2.Budget(id=number, selector=selector(number), allowed=allowed, name=f"budget-{number}")
