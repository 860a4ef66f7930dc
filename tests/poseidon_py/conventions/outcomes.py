"""What becomes of pods and queues in a world of objects: all that the flow service is told of them."""

import json
from typing import Any, NamedTuple

import msgspec

from poseidon_py.describe.bandwidth import Bandwidth
from poseidon_py.feed.update_rows import node_message
from poseidon_py.kube.informers.resource import Resource
from poseidon_py.kube.objects import Node, Pod
from poseidon_py.state.gangs.by_owner import JOBS
from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES
from poseidon_py.state.gangs.decode import Item, owner_or_group_of, preemption_of
from poseidon_py.tracking.identity import Identity, identity_of
from tests.poseidon_py.builders import pod_json
from tests.poseidon_py.conventions.device_outcomes import device_outcome, put_devices
from tests.poseidon_py.state.queues.rig import Rig

Json = dict[str, Any]


class World(NamedTuple):
    """The objects of a case. `queues`: the kind in force."""

    queues: str = "off"
    objects: tuple[tuple[Resource, Json], ...] = ()
    """PodGroups, owners of pods, priority classes."""
    queue_objects: tuple[tuple[str, Json], ...] = ()
    """By the names of RESOURCES."""
    pods: tuple[Json, ...] = ()
    nodes: tuple[Json, ...] = ()
    namespaces: tuple[Json, ...] = ()
    gangs_from: tuple[str, ...] = ()
    devices: tuple[tuple[str, Json], ...] = ()
    """Objects of resource.k8s.io, by kind."""


def an_object(name: str, *, namespace: str = "default", owner: Json | None = None, **fields: Any) -> Json:
    """An object. `fields`: labels, annotations, and others such as spec."""
    metadata: Json = {"name": name, "namespace": namespace, "uid": f"uid-{namespace}-{name}"}
    metadata |= {key: fields.pop(key) for key in ("labels", "annotations") if key in fields}
    if owner is not None:
        metadata["ownerReferences"] = [owner]
    return {"metadata": metadata, **fields}


def a_pod(name: str, *, owner: Json | None = None, **fields: Any) -> Json:
    body = pod_json(name, **fields)
    if owner is not None:
        body["metadata"]["ownerReferences"] = [owner]
    return body


def owned_by(kind: str, name: str, group: str = "batch", namespace: str = "default") -> Json:
    return {
        "apiVersion": f"{group}/v1",
        "kind": kind,
        "name": name,
        "uid": f"uid-{namespace}-{name}",
        "controller": True,
    }


JOB = owned_by("Job", "j")


def a_job(**fields: Any) -> tuple[Resource, Json]:
    return JOBS, an_object("j", spec={"parallelism": 3, **fields.pop("spec", {})}, **fields)


def rig_of(world: World) -> Rig:
    """A store that has observed all of a world, and described its pods."""
    rig = Rig(world.queues)
    rig.store.classes.bandwidth = Bandwidth(counted=True)
    rig.store.gangs.form_gangs_from(world.gangs_from, lambda: world.queues == "kueue")
    for each in world.namespaces:
        metadata = each["metadata"]
        rig.namespace(metadata["name"], metadata.get("labels"), metadata.get("annotations"))
    for resource, body in world.objects:
        entry = owner_or_group_of(resource, msgspec.json.decode(json.dumps(body), type=Item))
        rig.objects.put(resource, entry)
        if resource == PRIORITY_CLASSES:
            rig.store.priority_classes.put(entry.name, preemption_of(entry))
    for name, body in world.queue_objects:
        metadata = dict(body["metadata"])
        fields = {key: value for key, value in body.items() if key not in ("metadata", "spec")}
        extra = {key: metadata[key] for key in ("labels", "annotations") if key in metadata}
        rig.put(name, metadata["name"], body.get("spec"), namespace=metadata["namespace"], **extra, **fields)
    for body in world.nodes:
        rig.store.observe_node(msgspec.json.decode(json.dumps(body), type=Node))
    put_devices(rig, world.devices)
    for body in world.pods:
        rig.store.observe_pod(_decoded(body))
    for _ in range(3):
        for known in rig.store.pods.values():
            known.dirty = True
        rig.work()
    return rig


def _decoded(body: Json) -> Pod:
    return msgspec.json.decode(json.dumps(body), type=Pod)


def outcome(world: World) -> tuple[object, ...]:
    """Equal outcomes: the flow service is told the same, gangs have as long for their binds, `poseidon jobs` shows the
    same jobs and users, owners are resumed and limited
    alike, and pods are given the same devices. Problems that are reported do not count."""
    rig = rig_of(world)
    limits = [each.time_limit for each in rig.objects.by_uid.values()]
    resumed = [each.suspension is None or not each.suspension.stays for each in rig.objects.by_uid.values()]
    users: list[Identity] = [identity_of(_decoded(body)) for body in world.pods]
    nodes = [_node(rig, body) for body in world.nodes]
    tree = rig.queues.message()
    found = [_pod(rig, f"uid-{body['metadata']['name']}") for body in world.pods]
    return (
        tree.SerializeToString(deterministic=True) if tree is not None else b"",
        *limits,
        *resumed,
        *users,
        *nodes,
        *found,
        *(device_outcome(rig, [each["metadata"]["name"] for each in world.pods]) if world.devices else ()),
    )


def _pod(rig: Rig, uid: str) -> tuple[object, ...]:
    known = rig.store.pods[uid]
    described = known.described
    task_class = rig.store.classes.get(described.class_id)
    gang = rig.store.gangs.message(known.gang.id) if known.gang.id else None
    group = rig.store.gangs.groups.get(known.gang.id)
    return (
        task_class.SerializeToString(deterministic=True) if task_class is not None else b"",
        gang.SerializeToString(deterministic=True) if gang is not None else b"",
        group.timeout if group is not None else None,
        bool(known.gang.blocked),
        bool(rig.queues.problem_of(known)),
        known.gang.role,
        known.gang.never_preempts,
        known.queue,
        described.priority,
        described.preemption,
        rig.store.preemption_rules.preemptible(known),
        rig.store.preemption_rules.exemption(known, rig.store.now_us()),
        rig.store.is_movable(known),
        described.checkpoint_us,
        described.lasting,
        described.inputs,
    )


def _node(rig: Rig, body: Json) -> bytes:
    message = node_message(rig.store, rig.store.nodes[body["metadata"]["name"]])
    return message.SerializeToString(deterministic=True) if message is not None else b""
