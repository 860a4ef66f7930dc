"""A bridge that carries out plans of moves, between fakes of the engine and the API server."""

import asyncio
from typing import Any

from poseidon_py.app.move_plan import Move, Plan, Step, Win
from poseidon_py.app.rebalance import Rebalancer
from poseidon_py.describe.annotations.movable import MOVABLE
from poseidon_py.kube.client import BusyError
from poseidon_py.preempt.preemptor import Preemptor
from tests.poseidon_py.preempt.bench import FakePods, Reports
from tests.poseidon_py.rig import Rig

BUDGET = BusyError(429, "TooManyRequests", "Cannot evict pod as it would violate the pod's disruption budget.", 10.0)
"""The answer to an eviction that a disruption budget forbids."""


class MovingRig(Rig):
    """Pods a, b and c run on node n, and may be moved to m."""

    def __init__(self, **fields: Any) -> None:
        super().__init__(nodes=("n", "m"), **fields)
        self.pods = FakePods()
        self.reports = Reports()
        self.preemptor = Preemptor(self.pods, self.store, self.feed.reject, self.reports, call_later=lambda *_: Timer())
        self.loop._preempt = self.preemptor.take
        self.store.subscribe(self.preemptor)
        self.rebalancer = Rebalancer(
            self.store, self.engine, self.session, self.loop._leadership, self.changed.set, now_us=lambda: self.now_us
        )
        for name in "abc":
            self.pods.put(name)
            self.pod(name, node="n", owner="o", annotations={MOVABLE: "true"})

    def end_at_once(self) -> None:
        """From now on, pods that are evicted are gone at once."""
        evict = self.pods.evict_pod

        async def evict_and_end(namespace: str, name: str, uid: str) -> None:
            await evict(namespace, name, uid)
            asyncio.get_running_loop().call_soon(self.gone, name)

        self.pods.evict_pod = evict_and_end  # type: ignore[method-assign]

    async def carry_out(self, plan: Plan) -> dict[str, Any]:
        progress = await self.rebalancer.carry_out(plan)
        await self.settle()
        return progress

    async def follow(self) -> dict[str, str]:
        """State of each pod's move."""
        await self.rebalancer.exchange()
        await self.settle()
        return self.states

    @property
    def states(self) -> dict[str, str]:
        return {each["uid"].removeprefix("uid-"): each["state"] for each in self.rebalancer.progress()["moves"]}

    @property
    def reasons(self) -> dict[str, str]:
        return {each["uid"].removeprefix("uid-"): each["reason"] for each in self.rebalancer.progress()["moves"]}

    async def left(self, *names: str) -> None:
        """The kubelets have ended the pods."""
        for name in names:
            self.gone(name)
        await self.settle()


class Timer:
    def cancel(self) -> None:
        """It never ends in these tests."""


def move(name: str, target: str = "m") -> Move:
    return Move(pod=f"default/{name}", uid=f"uid-{name}", source="n", target=target)


def plan_of(*steps: Step, ident: str = "x", **fields: Any) -> Plan:
    return Plan(goal="pack", steps=list(steps), wins=[Win(node="n")], id=ident, **fields)


def chain() -> Plan:
    """a and b leave, then c, which empties n."""
    return plan_of(Step(step=1, moves=[move("a"), move("b")]), Step(step=2, moves=[move("c")], after=[1], win=1))
