"""The two subresources by which schedulers act on pods: binding and eviction."""

from __future__ import annotations

from typing import Any

import orjson

from benchmarks.cluster.api.deletion import check_deletion, delete
from benchmarks.cluster.api.kind_validation import binding as check_binding
from benchmarks.cluster.api.schema import conform
from benchmarks.cluster.api.verbs import Api, check_preconditions
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.errors import Json, bad_request, cause, conflict, invalid, too_many_requests
from benchmarks.cluster.store.kinds import BUDGETS, POD_NODE, POD_PHASE, PODS
from benchmarks.cluster.store.selectors import from_structured
from benchmarks.cluster.store.store import Record


def bind(api: Api, namespace: str, name: str, binding: Json, *, dry_run: bool = False) -> None:
    """Assign a pod to a node, once. The node need not exist, as with a real API server."""
    conform("v1", "Binding", binding)
    metadata: Json = binding.get("metadata") or {}
    if metadata.get("name") not in (None, "", name):
        raise bad_request("name in URL does not match name in Binding object")
    causes = check_binding(binding)
    if causes:
        raise invalid("Binding", "", name, causes)
    record = api.get(PODS, namespace, name)
    if metadata.get("uid") or metadata.get("resourceVersion"):
        check_preconditions(PODS, record, metadata)
    if record.deleting:
        why = f"pod {name} is being deleted, cannot be assigned to a host"
        raise conflict("pods/binding", "", name, why)
    bound_to = record.fields[POD_NODE]
    if bound_to:
        why = f'pod {name} is already assigned to node "{bound_to}"'
        raise conflict("pods/binding", "", name, why)
    pod: Json = orjson.loads(record.raw)
    spec, status = pod["spec"], pod["status"]
    if spec.get("schedulingGates"):
        raise conflict("pods/binding", "", name, f"pod {name} has non-empty .spec.schedulingGates")
    if dry_run:
        return
    node = binding["target"]["name"]
    spec["nodeName"] = node
    status.pop("nominatedNodeName", None)
    for key in ("annotations", "labels"):
        if metadata.get(key):
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **metadata[key]}
    set_condition(status, "PodScheduled", "True")
    bound = api.store.put(PODS, pod, record)
    api.audit.add(bound.version, "bind", namespace, name, record.uid, node)


def set_condition(status: Json, type_: str, value: str, reason: str = "", message: str = "", **extra: Any) -> bool:
    """Set one condition of a pod; the transition time changes only with the value. True if it changed."""
    conditions: list[Json] = status.setdefault("conditions", [])
    for condition in conditions:
        if condition.get("type") == type_:
            break
    else:
        condition = {"type": type_}
        conditions.append(condition)
    desired: Json = {"type": type_, "status": value, "lastProbeTime": None, **extra}
    if reason:
        desired["reason"] = reason
    if message:
        desired["message"] = message
    same = condition.get("status") == value
    desired["lastTransitionTime"] = condition.get("lastTransitionTime") if same else now_text()
    if condition == desired:
        return False
    condition.clear()
    condition.update(desired)
    return True


def evict(api: Api, namespace: str, name: str, eviction: Json, *, dry_run: bool = False) -> None:
    """Delete a pod if its disruption budget allows that; 429 if not."""
    conform("policy/v1", "Eviction", eviction)
    metadata: Json = eviction.get("metadata") or {}
    if metadata.get("name") not in (None, "", name):
        raise bad_request("name in URL does not match name in Eviction object")
    options: Json = eviction.get("deleteOptions") or {}
    dry_run = dry_run or options.get("dryRun") == ["All"]
    record = api.get(PODS, namespace, name)
    check_deletion(PODS, record, options.get("preconditions") or {})
    if record.fields[POD_PHASE] == "Running" and not record.deleting:
        _spend_budget(api, record, dry_run)
    if dry_run:
        return
    pod = record.parse()
    set_condition(pod["status"], "DisruptionTarget", "True", "EvictionByEvictionAPI", "Eviction API: evicting")
    marked = api.store.put(PODS, pod, record)
    api.audit.add(marked.version, "evict", namespace, name, record.uid, record.fields[POD_NODE])
    options = {key: value for key, value in options.items() if key != "preconditions"}
    delete(api, PODS, namespace, name, options)


def _spend_budget(api: Api, pod: Record, dry_run: bool) -> None:
    budgets: list[tuple[Record, Json]] = []
    for found in api.store.collection(BUDGETS).records(pod.namespace):
        obj = found.parse()
        if from_structured(obj.get("spec", {}).get("selector"))(pod.labels):
            budgets.append((found, obj))
    if not budgets:
        return
    if len(budgets) > 1:
        message = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        raise bad_request(message)
    budget, obj = budgets[0]
    status: Json = obj.get("status") or {}
    if status.get("observedGeneration", 0) < obj["metadata"].get("generation", 0):
        why = f"The disruption budget {budget.name} is still being processed by the server."
        raise _over_budget(why, 10)
    allowed = status.get("disruptionsAllowed", 0)
    if allowed <= 0:
        why = (
            f"The disruption budget {budget.name} needs {status.get('desiredHealthy', 0)} healthy pods "
            f"and has {status.get('currentHealthy', 0)} currently"
        )
        raise _over_budget(why, 0)
    if dry_run:
        return
    status["disruptionsAllowed"] = allowed - 1
    status.setdefault("disruptedPods", {})[pod.name] = now_text()
    api.store.put(BUDGETS, obj, budget)


def _over_budget(why: str, retry_after: int) -> Exception:
    return too_many_requests(
        "Cannot evict pod as it would violate the pod's disruption budget.",
        retry_after,
        [cause("", why, "DisruptionBudget")],
    )
