"""The condition EvictionInProgress of a DeviceTaintRule."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.cluster.store.clock import now_text

Json = dict[str, Any]

_TYPE = "EvictionInProgress"


@dataclass
class RuleEffects:
    """What a rule does at present."""

    pods: list[tuple[str, str]] = field(default_factory=list)
    """Namespace and name of the pods that will be deleted."""
    evicted: int = 0
    """Pods that have been deleted."""
    published: int = 0
    """Devices that the rule selects."""


def condition_of(rule: Json, effects: RuleEffects) -> Json | None:
    """The condition that a rule should have; None: it has it."""
    desired = {"type": _TYPE, "observedGeneration": rule["metadata"]["generation"], **_state(rule, effects)}
    if effects.evicted:
        past = f"{_pods(effects.evicted)} evicted since starting the controller."
        desired["message"] = f"{desired['message']} {past}".strip()
    present = next((one for one in (rule.get("status") or {}).get("conditions") or () if one["type"] == _TYPE), None)
    if present is not None and {**present, "lastTransitionTime": ""} == {**desired, "lastTransitionTime": ""}:
        return None
    return {**desired, "lastTransitionTime": now_text()}


def _state(rule: Json, effects: RuleEffects) -> Json:
    effect = rule["spec"]["taint"].get("effect")
    if effect == "None":
        message = f"{effects.published} published device{'s' * (effects.published != 1)} selected."
        return {"status": "False", "reason": "NoEffect", "message": message}
    if effect != "NoExecute":
        message = "Eviction only happens for the NoExecute effect."
        return {"status": "False", "reason": "OtherEffect", "message": message}
    if effects.pods:
        spaces = len({namespace for namespace, _ in effects.pods})
        where = "1 namespace" if spaces == 1 else f"{spaces} different namespaces"
        need = "needs" if len(effects.pods) == 1 else "need"
        message = f"{_pods(len(effects.pods))} {need} to be evicted in {where}."
        return {"status": "True", "reason": "PodsPendingEviction", "message": message}
    return {"status": "False", "reason": "Completed" if effects.evicted else "NotStarted", "message": ""}


def _pods(count: int) -> str:
    return f"{count} pod{'s' * (count != 1)}"
