"""The objects of one resource, as its watch reports them."""

import msgspec

from poseidon_py.kube.objects import Metadata
from poseidon_py.metrics.metrics import Metrics
from poseidon_py.state.gangs import resource_cache
from poseidon_py.state.gangs.by_owner import JOBS
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING
from poseidon_py.state.gangs.decode import Item
from poseidon_py.state.gangs.resource_cache import ResourceCache


def test_an_invalid_object_keeps_its_last_valid_state():
    changed = []
    cache = ResourceCache(
        COSCHEDULING,
        lambda resource, owner_or_group, gone=False: changed.append((owner_or_group.name, gone)),
        Metrics(),
    )
    raw = b'{"metadata": {"name": "g", "uid": "u"}, "spec": {"minMember": 2}}'
    cache.observe(msgspec.json.decode(raw, type=Item))
    cache.invalid(Metadata(name="g", uid="u"), "is nested too deeply")
    cache.listed({"u"})
    assert changed == [("g", False)]
    assert "u" in cache.by_uid
    cache.listed(set())
    assert changed == [("g", False), ("g", True)]


class Uids(set[str]):
    """Counts the copies with other elements that are made of it."""

    copies = 0

    def __or__(self, other):
        self.copies += 1
        return set(self).union(other)


def test_a_list_of_many_owners_is_taken_without_a_copy_for_each():
    cache = ResourceCache(JOBS, lambda *_, gone=False: None, Metrics())
    for number in range(5):
        cache.observe(Item(metadata=Metadata(name=f"j{number}", namespace="ns", uid=f"u{number}")))
    listed = Uids({"u0", "u1", "u2", "u3"})
    cache.listed(listed)
    assert (set(cache.by_uid), listed.copies) == (listed, 0)


def test_of_many_owners_that_do_not_exist_the_latest_are_remembered(monkeypatch):
    monkeypatch.setattr(resource_cache, "_GONE_KEPT", 2)
    cache = ResourceCache(JOBS, lambda *_, gone=False: None, Metrics())
    for uid in ("a", "b", "a", "c"):
        cache.missing(uid)
    assert list(cache.gone) == ["a", "c"]
