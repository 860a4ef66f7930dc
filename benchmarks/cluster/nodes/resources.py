"""The amounts that a pod requests from a node, computed as the scheduler and the kubelet do.

Sum over containers plus restartable (sidecar) init containers; at least the request of each init container plus the
sidecars started before it; pod-level requests where given; plus overhead. cpu in millicores, others in whole units.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.cluster.store.quantities import units

Amounts = dict[str, int]
_POD_LEVEL = ("cpu", "memory")


def amounts(given: Mapping[str, Any] | None) -> Amounts:
    """A resource list in base units."""
    return {name: units(name, quantity) for name, quantity in (given or {}).items()}


def _requests(container: Mapping[str, Any]) -> Amounts:
    return amounts((container.get("resources") or {}).get("requests"))


def _add(total: Amounts, amounts: Amounts) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def pod_amounts(spec: Mapping[str, Any]) -> Amounts:
    """The request of a whole pod, without the pod itself (the count of pods)."""
    total: Amounts = {}
    for container in spec.get("containers") or ():
        _add(total, _requests(container))
    init = spec.get("initContainers")
    if init:
        sidecars: Amounts = {}
        peak: Amounts = {}
        for container in init:
            need = _requests(container)
            if container.get("restartPolicy") == "Always":
                _add(sidecars, need)
                need = dict(sidecars)
            else:
                _add(need, sidecars)
            for name, amount in need.items():
                peak[name] = max(peak.get(name, 0), amount)
        _add(total, sidecars)
        for name, amount in peak.items():
            total[name] = max(total.get(name, 0), amount)
    whole = amounts((spec.get("resources") or {}).get("requests"))
    for name, amount in whole.items():
        if name in _POD_LEVEL or name.startswith("hugepages-"):
            total[name] = amount
    if spec.get("overhead"):
        _add(total, amounts(spec["overhead"]))
    return total
