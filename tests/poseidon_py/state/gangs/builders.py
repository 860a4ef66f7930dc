"""Declarations, objects and pods for tests of gangs."""

import json

import msgspec

from poseidon_py.kube.objects import Pod
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from poseidon_py.state.gangs.model import GangHints, Owner, OwnerOrGroup, Unknown
from tests.poseidon_py.builders import pod_json

SECOND_US = 1_000_000
CREATED = "2026-01-01T00:00:00Z"
CREATED_US = 1_767_225_600 * SECOND_US


def hints(labels=None, annotations=None, group="", owner=None, name="p", created_us=CREATED_US):
    return GangHints("ns", name, f"uid-{name}", created_us, labels or {}, annotations or {}, group, owner)


def owner_or_group(
    resource,
    name="g",
    *,
    spec=None,
    status=None,
    labels=None,
    annotations=None,
    owner=None,
    uid=None,
    created=CREATED,
    namespace="ns",
    **fields,
):
    metadata = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "creationTimestamp": created,
        "labels": labels or {},
        "annotations": annotations or {},
    }
    if owner is not None:
        metadata["ownerReferences"] = [
            {
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.uid,
                "apiVersion": f"{owner.group}/v1",
                "controller": True,
            }
        ]
    body = {"metadata": metadata, "spec": spec or {}, "status": status or {}, **fields}
    return owner_or_group_of(resource, msgspec.json.decode(json.dumps(body), type=Item))


JOB = Owner("Job", "j", "uid-j", "batch")
SET = Owner("JobSet", "s", "uid-s", "jobset.x-k8s.io")


class Objects:
    """Existing objects; `unknown`: UIDs and (resource, namespace, name) whose existence is not known yet."""

    def __init__(self, *objects):
        self.by_name: dict[tuple, OwnerOrGroup] = {}
        self.by_uid: dict[str, OwnerOrGroup] = {}
        self.unknown: set[object] = set()
        self.unserved: set[object] = set()
        self.forbidden: dict[str, str] = {}
        """Kind of owners that may not be read -> why."""
        for resource, each in objects:
            self.put(resource, each)

    def delete(self, resource, each):
        del self.by_name[resource, each.namespace, each.name], self.by_uid[each.uid]

    def put(self, resource, each):
        self.by_name[resource, each.namespace, each.name] = each
        self.by_uid[each.uid] = each

    def find(self, resource, namespace, name):
        if (resource, namespace, name) in self.unknown:
            raise Unknown(resource.label)
        return self.by_name.get((resource, namespace, name))

    def owner(self, owner, namespace):
        if owner.uid in self.unknown:
            raise Unknown(f"owner/{owner.uid}")
        return self.by_uid.get(owner.uid)

    def serves(self, resource):
        if resource in self.unknown:
            raise Unknown(resource.label)
        return resource not in self.unserved

    def unreadable(self, owner):
        return self.forbidden.get(owner.kind, "")

    def has_owner(self, uid):
        return uid in self.by_uid

    def known_owner(self, uid):
        return self.by_uid.get(uid)

    def children(self, uid):
        return [each for each in self.by_uid.values() if each.owner is not None and each.owner.uid == uid]

    def path_of(self, resource, each):
        return "" if resource in self.unserved else f"/{resource.plural}/{each.name}"


def pod(name, *, labels=None, annotations=None, owner=None, priority=None, **fields):
    body = pod_json(name, namespace="ns", **fields)
    body["metadata"]["labels"] = labels or {}
    body["metadata"]["annotations"] = annotations or {}
    if owner is not None:
        body["metadata"]["ownerReferences"] = [
            {
                "kind": owner.kind,
                "name": owner.name,
                "uid": owner.uid,
                "apiVersion": f"{owner.group}/v1",
                "controller": True,
            }
        ]
    if priority is not None:
        body["spec"]["priority"] = priority
    return msgspec.json.decode(json.dumps(body), type=Pod)
