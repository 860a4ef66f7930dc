"""Which pending pods are spread by default, as Services, controllers and pods change."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.feed.update_rows import describe_pod
from poseidon_py.kube.objects import OwnerReference
from poseidon_py.kube.service_objects import Service
from poseidon_py.state.gangs.model import Owner, OwnerOrGroup, Unknown
from poseidon_py.state.store import Store
from tests.effort import examples
from tests.poseidon_py.builders import pod

APP = {"app": "a"}


def service(selector, name="s", namespace="default"):
    body = {"metadata": {"name": name, "namespace": namespace, "uid": f"uid-{name}"}, "spec": {"selector": selector}}
    return msgspec.json.decode(json.dumps(body), type=Service)


class Owners:
    """Controllers by UID: their selectors; None: still being looked up."""

    def __init__(self):
        self.selectors: dict[str, object] = {}

    def find(self, resource, namespace, name):
        return None

    def has_owner(self, uid):
        return uid in self.selectors

    def known_owner(self, uid):
        return None

    def children(self, uid):
        return ()

    def owner(self, owner: Owner, namespace):
        if owner.uid not in self.selectors:
            return None
        selector = self.selectors[owner.uid]
        if selector is None:
            raise Unknown(owner.uid)
        return OwnerOrGroup(owner.uid, namespace, owner.name, 0, {}, None, {}, selector=json.dumps(selector).encode())

    def unreadable(self, owner):
        return ""

    def serves(self, resource):
        return True


class Rig:
    """A store; `touched` are the pods that Services have changed since it was cleared."""

    def __init__(self):
        self.touched: set[str] = set()
        self.store = Store(["poseidon"])
        self.store.spreading.enabled = True
        self.store.spreading._touch = self.touched.add
        self.owners = self.store.gangs.objects = Owners()

    def pod(self, name, labels, owner=None, **fields):
        """Creates or changes a pod; owner: kind and UID of its controller."""
        item = pod(name, labels=labels, **fields)
        if owner is not None:
            kind, uid = owner
            version = "v1" if kind == "ReplicationController" else "apps/v1"
            item.metadata.owners = [OwnerReference(uid, kind, "o", version, True)]
        self.store.observe_pod(item)
        self.describe(name)

    def describe(self, name):
        describe_pod(self.store, self.store.pods[f"uid-{name}"])

    def spread_from(self, name):
        """The requirements of the selector that a pod is spread from; empty: none."""
        found = self.store.classes.get(self.store.pods[f"uid-{name}"].described.class_id)
        assert found is not None
        assert len(found.spread) in (0, 2)
        return {(each.key, each.operator, *each.values) for spread in found.spread for each in spread.selector.labels}


@pytest.fixture
def rig():
    return Rig()


def test_a_service_changes_the_pods_that_it_matches_and_no_others(rig):
    rig.pod("a", APP)
    rig.pod("more", {**APP, "x": "y"})
    rig.pod("other", {"app": "b"})
    rig.pod("elsewhere", APP, namespace="kube-system")
    rig.store.spreading.put_service(service(APP))
    assert rig.touched == {"uid-a", "uid-more"}
    for name in ("a", "more", "other", "elsewhere"):
        rig.describe(name)
    assert [rig.spread_from(name) for name in ("a", "more", "other", "elsewhere")] == [{("app", "In", "a")}] * 2 + [
        set()
    ] * 2


def test_a_service_that_changes_in_other_fields_changes_nothing(rig):
    rig.store.spreading.put_service(service(APP))
    rig.pod("a", APP)
    rig.store.spreading.put_service(service(APP))
    assert rig.touched == set()


def test_a_changed_and_a_deleted_service_change_their_pods(rig):
    rig.store.spreading.put_service(service(APP))
    rig.pod("a", APP)
    rig.pod("b", {"app": "b"})
    rig.store.spreading.put_service(service({"app": "b"}))
    assert rig.touched == {"uid-a", "uid-b"}
    rig.describe("a")
    rig.describe("b")
    assert (rig.spread_from("a"), rig.spread_from("b")) == (set(), {("app", "In", "b")})
    rig.touched.clear()
    rig.store.spreading.drop_service(("default", "s"))
    assert rig.touched == {"uid-b"}
    rig.describe("b")
    assert rig.spread_from("b") == set()


@pytest.mark.parametrize("selector", [None, {}])
def test_a_service_without_a_selector_matches_nothing(rig, selector):
    rig.store.spreading.put_service(service(selector))
    rig.pod("a", APP)
    assert rig.spread_from("a") == set()


def test_pods_with_a_node_are_left_alone(rig):
    rig.store.spreading.put_service(service(APP))
    rig.pod("a", APP)
    waiting = rig.store.pods["uid-a"].described.class_id
    rig.pod("a", APP, node="n")
    assert rig.spread_from("a") == set()
    assert rig.store.pods["uid-a"].described.class_id != waiting
    rig.store.spreading.drop_service(("default", "s"))
    assert rig.touched == set()


def test_members_of_gangs_are_not_spread(rig):
    rig.store.spreading.put_service(service(APP))
    gang = {"poseidon.io/gang": "2", "poseidon.io/gang-name": "g"}
    rig.pod("a", APP, annotations=gang)
    assert rig.store.pods["uid-a"].gang.id
    assert rig.spread_from("a") == set()


@pytest.mark.parametrize(
    ("kind", "selector", "expected"),
    [
        ("ReplicationController", APP, {("app", "In", "a")}),
        ("ReplicaSet", {"matchLabels": APP}, {("app", "In", "a")}),
        ("StatefulSet", {"matchLabels": APP}, {("app", "In", "a")}),
    ],
)
def test_the_selector_of_a_controller_counts(rig, kind, selector, expected):
    rig.owners.selectors["o"] = selector
    rig.pod("a", APP, (kind, "o"))
    assert rig.spread_from("a") == expected


@pytest.mark.parametrize("owners", [{}, {"o": None}], ids=["gone", "still looked up"])
def test_a_controller_that_is_not_known_counts_for_nothing(rig, owners):
    rig.owners.selectors |= owners
    rig.store.spreading.put_service(service(APP))
    rig.pod("a", APP, ("ReplicaSet", "o"))
    assert rig.spread_from("a") == {("app", "In", "a")}


def test_nothing_is_spread_unless_it_is_enabled(rig):
    rig.store.spreading.enabled = False
    rig.store.spreading.put_service(service(APP))
    rig.pod("a", APP)
    assert rig.spread_from("a") == set()


def test_nothing_is_left_when_pods_and_services_are_gone(rig):
    rig.store.spreading.put_service(service(APP))
    rig.pod("a", APP)
    rig.pod("b", {**APP, "x": "y"})
    rig.pod("a", {"app": "b"})  # relabelled
    rig.store.remove_pod("uid-a")
    rig.pod("b", {**APP, "x": "y"}, node="n")
    rig.store.spreading.drop_service(("default", "s"))
    assert not rig.store.spreading._namespaces
    assert not rig.store.spreading._pods


LABELS = st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), max_size=3)
CHANGES = st.lists(
    st.one_of(
        st.tuples(st.just("service"), st.sampled_from("abc"), st.one_of(st.none(), LABELS)),
        st.tuples(st.just("gone"), st.sampled_from("abc"), st.none()),
        st.tuples(st.just("pod"), st.sampled_from("pqr"), LABELS),
        st.tuples(st.just("bound"), st.sampled_from("pqr"), st.none()),
    ),
    max_size=15,
)


@examples(200)
@given(CHANGES)
def test_after_any_changes_each_pod_has_the_selectors_of_the_services_that_match_it(changes):
    rig = Rig()
    services: dict[str, dict[str, str]] = {}
    pods: dict[str, dict[str, str]] = {}
    for what, name, labels in changes:
        before = {each: expected_of(mine, services) for each, mine in pods.items()}
        rig.touched.clear()
        if what == "service":
            services[name] = labels or {}
            rig.store.spreading.put_service(service(labels, name))
        elif what == "gone":
            services.pop(name, None)
            rig.store.spreading.drop_service(("default", name))
        elif what == "pod":
            pods[name] = labels
            rig.pod(name, labels)
        elif name in pods:
            del pods[name]
            rig.store.remove_pod(f"uid-{name}")
        changed = {
            f"uid-{each}" for each in before.keys() & pods.keys() if before[each] != expected_of(pods[each], services)
        }
        if what in ("service", "gone"):
            assert changed <= rig.touched
        for uid in rig.touched:
            rig.describe(uid.removeprefix("uid-"))
    for name, labels in pods.items():
        assert rig.spread_from(name) == expected_of(labels, services)


def expected_of(labels, services):
    """An oracle: the union of the selectors of which all labels are there."""
    return {
        (key, "In", value)
        for selector in services.values()
        if all(labels.get(k) == v for k, v in selector.items())
        for key, value in selector.items()
    }
