"""The store compared with a model of dicts: pods and nodes created, changed, bound and deleted in any order."""

from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store
from tests.effort import examples
from tests.poseidon_py.builders import node, pod

PODS = st.sampled_from(["a", "b", "c"])
NODES = st.sampled_from(["n", "m"])
MAYBE_A_NODE = st.sampled_from(["", "", "n", "m"])
FLAG = st.booleans()


@dataclass
class ModelPod:
    state: PodState
    node: str = ""
    mine: bool = True
    gated: bool = False
    deleting: bool = False


def test_pods_of_one_second_are_in_the_order_of_their_arrival():
    """As in kube-scheduler's queue, which has the time of arrival; objects have whole seconds."""
    store = Store(["poseidon"])
    earlier, later = "2026-01-01T00:00:00Z", "2026-01-01T00:00:01Z"
    for name, created in (("z", earlier), ("y", later), ("b", earlier), ("a", earlier), ("c", later)):
        store.observe_pod(pod(name, created=created))
    store.observe_pod(pod("z", created=earlier, labels={"changed": "later"}))
    moments = {each.name: each.created_us for each in store.pods.values()}
    assert sorted(moments, key=moments.__getitem__) == list("zbayc")
    assert len(set(moments.values())) == 5  # else the engine decides, by their numbers
    assert {each.created_us // 1_000_000 for each in store.pods.values()} == {1_767_225_600, 1_767_225_601}


def test_nothing_is_kept_of_a_node_without_pods():
    store = Store(["poseidon"])
    store.observe_node(node("n"))
    store.observe_pod(pod("a", node="n"))
    store.observe_pod(pod("b", node="n"))
    store.remove_node("n")
    store.remove_pod("uid-a")
    assert store._on_node == {"n": {"uid-b": None}}
    store.remove_pod("uid-b")
    assert store._on_node == {}


class StoreAgainstModel(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.announced: list[str] = []
        self.store = Store(["poseidon"], defer_seconds=0.0)  # a deferral needs an event loop
        self.store.subscribe(self)
        self.model: dict[str, ModelPod] = {}
        self.nodes: dict[str, str] = {}
        self.ended: list[str] = []
        """Names of pods that were bound or went, in order."""
        self.generation = 0
        self.tasks: dict[str, int] = {}

    def settled(self, known: PodRecord) -> None:
        self.announced.append(known.name)

    @rule(
        name=PODS, at=st.sampled_from(["", "", "n", "m"]), mine=st.booleans(), gated=st.booleans(), going=st.booleans()
    )
    def observe(self, name: str, at: str, mine: bool, gated: bool, going: bool) -> None:
        before = self.model.get(name)
        scheduler = "poseidon" if mine else "another"
        self.store.observe_pod(pod(name, node=at, scheduler=scheduler, gates=gated, deleting=going))
        state = PodState.BOUND if at else PodState.WAITING
        if before is not None and before.state is PodState.ASSUMED and not at:
            state = PodState.ASSUMED
        place = at or (before.node if before is not None and state is PodState.ASSUMED else "")
        self.model[name] = ModelPod(state, place, mine, gated, going)
        if at and not (before is not None and before.state is PodState.BOUND and before.node == at):
            self.ended.append(name)

    @rule(name=PODS, terminated=st.booleans())
    def remove(self, name: str, terminated: bool) -> None:
        if terminated:
            self.store.observe_pod(pod(name, phase="Succeeded", node="n"))
        else:
            self.store.remove_pod(f"uid-{name}")
        if self.model.pop(name, None) is not None:
            self.ended.append(name)

    @rule(there=st.sets(PODS))
    def list_pods(self, there: set[str]) -> None:
        self.store.pods_listed({f"uid-{name}" for name in there})
        for name in [name for name in self.model if name not in there]:
            del self.model[name]
            self.ended.append(name)

    @rule(name=PODS, at=NODES)
    def assume(self, name: str, at: str) -> None:
        known = self.store.pods.get(f"uid-{name}")
        if known is None:
            return
        entry = self.model[name]
        assert self.store.assume(known, at) is (entry.state is PodState.WAITING)
        if entry.state is PodState.WAITING:
            entry.state, entry.node = PodState.ASSUMED, at

    @rule(name=PODS)
    def release(self, name: str) -> None:
        known = self.store.pods.get(f"uid-{name}")
        if known is None:
            return
        entry = self.model[name]
        assert self.store.release(known) is (entry.state is PodState.ASSUMED)
        if entry.state is PodState.ASSUMED:
            entry.state, entry.node = PodState.WAITING, ""

    @rule(name=NODES, again=st.booleans())
    def observe_node(self, name: str, again: bool) -> None:
        if again or name not in self.nodes:
            self.generation += 1
            self.nodes[name] = f"uid-{name}-{self.generation}"
        self.store.observe_node(node(name, uid=self.nodes[name]))

    @rule(name=NODES)
    def remove_node(self, name: str) -> None:
        self.store.remove_node(name)
        self.nodes.pop(name, None)

    @rule()
    def engine_hears_of_what_is_gone(self) -> None:
        self.store.forget_gone(list(self.store.gone_tasks))
        self.store.gone_nodes.clear()

    @invariant()
    def the_store_agrees(self) -> None:
        assert {known.name for known in self.store.pods.values()} == set(self.model)
        for known in self.store.pods.values():
            entry = self.model[known.name]
            assert known.state is entry.state
            assert known.node == (entry.node if entry.state is PodState.BOUND else "")
            assert known.assumed == (entry.node if entry.state is PodState.ASSUMED else "")
            waits = entry.state is not PodState.BOUND
            assert known.schedulable is (entry.mine and waits and not entry.gated and not entry.deleting)
        waiting = {n for n, e in self.model.items() if e.mine and e.state is not PodState.BOUND and not e.deleting}
        assert {known.name for known in self.store.waiting()} == waiting

    @invariant()
    def every_pod_that_was_bound_or_went_was_announced_once(self) -> None:
        assert self.announced == self.ended

    @invariant()
    def nodes_are_found_by_their_ids(self) -> None:
        assert {known.name: known.uid for known in self.store.nodes.values()} == self.nodes
        for known in self.store.nodes.values():
            assert self.store.node_with_id(known.id) == known.name
            assert known.id not in self.store.gone_nodes

    @invariant()
    def a_task_id_is_of_one_pod_and_is_kept_until_the_engine_has_forgotten_it(self) -> None:
        store = self.store
        there = {uid: known.task for uid, known in store.pods.items()}
        assert not set(there) & set(store.gone_tasks)
        tasks = there | store.gone_tasks
        assert len(set(tasks.values())) == len(tasks)
        for uid, task in self.tasks.items():
            assert tasks.get(uid, task) == task
        self.tasks = tasks
        for known in store.pods.values():
            assert store.pod_of_task(known.task) is known


TestStoreAgainstModel = StoreAgainstModel.TestCase
TestStoreAgainstModel.settings = examples(60, steps=30)
