"""A registry of gangs whose pods and objects tests change."""

from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.state.gangs.listener import GangListener
from poseidon_py.state.store import Store
from protos.gen import flow_pb2
from tests.poseidon_py.state.gangs.builders import Objects, pod


class Rig(GangListener):
    def __init__(self, *objects):
        self.store = Store(["poseidon"])
        self.registry = self.store.gangs
        self.objects = self.registry.objects = Objects(*objects)
        self.blocked: list[tuple[str, str]] = []
        self.invalid: list[tuple[str, str]] = []
        self.unreadable: list[tuple[str, str]] = []
        self.below: list[tuple[str, int]] = []
        self.halves: list[str] = []
        self.registry.listener = self

    def gang_blocked(self, known, why):
        self.blocked.append((known.name, why))

    def gang_invalid(self, known, problem):
        self.invalid.append((known.name, problem))

    def owner_unreadable(self, known, problem):
        self.unreadable.append((known.name, problem))

    def below_minimum(self, group):
        self.below.append((group.name, len(group.bound)))

    def half_bound(self, group):
        self.halves.append(group.name)

    def pod(self, name, **fields):
        self.store.observe_pod(pod(name, **fields))
        self.work()

    def put(self, resource, each):
        self.objects.put(resource, each)
        self.registry.changed(resource, each)
        self.work()

    def gone(self, name):
        self.store.remove_pod(f"uid-{name}")
        self.work()

    def work(self):
        for _ in range(3):
            for known in list(self.store.pods.values()):
                if known.dirty:
                    known.dirty = False
                    describe_pod(self.store, known)
        for gang_id in list(self.registry.groups):
            self.registry.message(gang_id)

    def known(self, name):
        return self.store.pods[f"uid-{name}"]

    def message(self, name) -> flow_pb2.Gang:
        """The message about a pod's gang for the engine."""
        found = self.registry.message(self.known(name).gang.id)
        assert found is not None
        return found

    def gang(self, name):
        """A pod's gang for the engine: (minimum, name), or why there is none."""
        known = self.known(name)
        if target(self.store, known) is None:
            return known.gang.blocked
        message = self.registry.message(known.gang.id) if known.gang.id else None
        return (message.minimum, message.name) if message else None
