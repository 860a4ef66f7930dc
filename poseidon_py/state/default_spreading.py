"""Which pending pods are spread by default, and what they are spread from: their Services and controllers.

Only pending pods are known here. Their label sets and the Services of a namespace find each other by label pairs, so
that neither a new pod is compared with all Services, nor a changed Service with all pods.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from poseidon_py.describe.label_profiles import Profiles
from poseidon_py.describe.pod_affinity import default_selector
from poseidon_py.kube.objects import Pod
from poseidon_py.kube.service_objects import Service
from poseidon_py.state.gangs.keys import controller
from poseidon_py.state.gangs.model import Objects, Owner, Unknown
from poseidon_py.state.records import PodRecord

_Pair = tuple[str, str]
_Member = TypeVar("_Member", str, int)


@dataclass(slots=True)
class _LabelSet:
    """The pending pods with equal labels."""

    labels: Mapping[str, str]
    pods: set[str] = field(default_factory=set)
    """UIDs."""
    selectors: dict[tuple[str, bytes], bytes] = field(default_factory=dict)
    """What the pods are spread from, by kind and selector of their controller."""


@dataclass(slots=True)
class _Namespace:
    services: dict[str, Mapping[str, str]] = field(default_factory=dict)
    """Name -> selector, not empty."""
    services_with: dict[_Pair, set[str]] = field(default_factory=dict)
    """Each Service by one pair of its selector."""
    label_sets: dict[int, _LabelSet] = field(default_factory=dict)
    """By id of the profile."""
    label_sets_with: dict[_Pair, set[int]] = field(default_factory=dict)
    """Each label set by all of its pairs."""

    def matching_services(self, labels: Mapping[str, str]) -> Iterator[Mapping[str, str]]:
        for pair in labels.items():
            for name in self.services_with.get(pair, ()):
                if (selector := self.services[name]).items() <= labels.items():
                    yield selector

    def matched_label_sets(self, selector: Mapping[str, str]) -> list[_LabelSet]:
        fewest = min((self.label_sets_with.get(pair, set()) for pair in selector.items()), key=len)
        found = (self.label_sets[profile] for profile in fewest)
        return [each for each in found if selector.items() <= each.labels.items()]


class DefaultSpreading:
    """`put_service` and `drop_service` what the watch reports; `selector_of` for each pod that is described."""

    def __init__(self, profiles: Profiles, objects: Callable[[], Objects], touch: Callable[[str], None]) -> None:
        """`objects`: finds the controllers of pods. `touch`: called with the UID of each pod that changes."""
        self.enabled = False
        """Must be set before the first pod is described."""
        self._profiles = profiles
        self._objects = objects
        self._touch = touch
        self._namespaces: dict[str, _Namespace] = {}
        self._pods: dict[str, tuple[int, Owner | None]] = {}
        """UID -> profile and controller of each pending pod."""

    # -- services ---------------------------------------------------------------------------------------------

    def put_service(self, item: Service) -> None:
        namespace, name = item.metadata.namespace, item.metadata.name
        # an absent selector matches no pod; an empty one matches all of them, but selects nothing
        self._change(namespace, name, item.spec.selector or {})

    def drop_service(self, key: tuple[str, str]) -> None:
        """A Service is deleted. `key`: its namespace and name."""
        self._change(*key, {})

    def _change(self, namespace: str, name: str, selector: Mapping[str, str]) -> None:
        there = self._namespaces.setdefault(namespace, _Namespace())
        before = there.services.pop(name, {})
        if before:
            pair = next(pair for pair in before.items() if name in there.services_with.get(pair, ()))
            _discard(there.services_with, pair, name)
        if selector:
            pair = min(selector.items(), key=lambda pair: len(there.services_with.get(pair, ())))
            there.services_with.setdefault(pair, set()).add(name)
            there.services[name] = selector
        if before != selector:
            for changed in filter(None, (before, selector)):
                for label_set in there.matched_label_sets(changed):
                    label_set.selectors.clear()
                    for uid in label_set.pods:
                        self._touch(uid)
        self._prune(namespace)

    # -- pods -------------------------------------------------------------------------------------------------

    def selector_of(self, known: PodRecord, pod: Pod | None) -> bytes:
        """The encoded PeerSelector of what a pod is spread from by default; empty: nothing, or it has a node. `pod`:
        its newest state; None if only other objects have changed."""
        if not self.enabled or known.node:
            return b""
        if pod is not None:
            self._note(known, controller(pod.metadata.owners))
        noted = self._pods.get(known.uid)
        if noted is None or known.gang.id:  # the members of a gang work together
            return b""
        profile, owner = noted
        there = self._namespaces[known.namespace]
        label_set = there.label_sets[profile]
        key = self._of_controller(owner, known.namespace)
        selector = label_set.selectors.get(key)
        if selector is None:
            selector = default_selector(known.namespace, there.matching_services(label_set.labels), *key)
            label_set.selectors[key] = selector
        return selector

    def settled(self, known: PodRecord) -> None:
        """The pod is bound or deleted."""
        noted = self._pods.pop(known.uid, None)
        if noted is None:
            return
        there, profile = self._namespaces[known.namespace], noted[0]
        label_set = there.label_sets[profile]
        label_set.pods.discard(known.uid)
        if not label_set.pods:
            del there.label_sets[profile]
            for pair in label_set.labels.items():
                _discard(there.label_sets_with, pair, profile)
            self._prune(known.namespace)

    def _note(self, known: PodRecord, owner: Owner | None) -> None:
        noted, profile = self._pods.get(known.uid), known.described.profile
        if noted == (profile, owner):
            return
        if noted is not None:
            self.settled(known)
        self._pods[known.uid] = profile, owner
        there = self._namespaces.setdefault(known.namespace, _Namespace())
        label_set = there.label_sets.get(profile)
        if label_set is None:
            described = self._profiles.get(profile)
            label_set = there.label_sets[profile] = _LabelSet(dict(described.labels) if described is not None else {})
            for pair in label_set.labels.items():
                there.label_sets_with.setdefault(pair, set()).add(profile)
        label_set.pods.add(known.uid)

    def _of_controller(self, owner: Owner | None, namespace: str) -> tuple[str, bytes]:
        """Kind and spec.selector in JSON of a controller; empty if its selector does not count or is not known.

        The registry of gangs has looked it up before: until then the pod is not sent to the engine.
        """
        if owner is None:
            return "", b""
        try:
            found = self._objects().owner(owner, namespace)
        except Unknown:
            found = None
        return (owner.kind, found.selector) if found is not None and found.selector else ("", b"")

    def _prune(self, namespace: str) -> None:
        there = self._namespaces[namespace]
        if not (there.services or there.label_sets):
            del self._namespaces[namespace]


def _discard(sets: dict[_Pair, set[_Member]], pair: _Pair, member: _Member) -> None:
    sets[pair].discard(member)
    if not sets[pair]:
        del sets[pair]
