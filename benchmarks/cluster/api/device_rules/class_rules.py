"""DeviceClasses, and DeviceTaintRules, which taint devices beside their drivers."""

from __future__ import annotations

from benchmarks.cluster.api.device_rules.allocation_rules import conditions_of
from benchmarks.cluster.api.device_rules.claim_rules import MAX_CONFIGS, configuration, selectors
from benchmarks.cluster.api.device_rules.field_checks import (
    dns_label,
    driver_name,
    each,
    pool_name,
    too_many,
)
from benchmarks.cluster.api.device_rules.slice_rules import taint
from benchmarks.cluster.api.validation import Causes, Json, labels
from benchmarks.cluster.store.clock import now_text
from benchmarks.cluster.store.errors import invalid_value

MAX_RULE_CONDITIONS = 8
_QUOTA_PREFIX = "requests."


def device_class(obj: Json) -> Causes:
    """A class."""
    spec = obj.get("spec") or {}
    causes = selectors(spec.get("selectors"), "spec.selectors")
    causes += each(spec.get("config"), MAX_CONFIGS, "spec.config", configuration)
    name = spec.get("extendedResourceName")
    if name is not None and not _is_extended(name):
        causes.append(invalid_value("spec.extendedResourceName", name, "must be a valid extended resource name"))
    return causes


def _is_extended(name: str) -> bool:
    """`IsExtendedResourceName`: qualified, not of kubernetes.io, and a label's name also as a quota counts it."""
    if "/" not in name or "kubernetes.io/" in name or name.startswith(_QUOTA_PREFIX):
        return False
    return not labels({f"{_QUOTA_PREFIX}{name}": ""}, "")


def default_rule(obj: Json) -> None:
    """The defaults of a rule: the time since which the taint is there."""
    spec = obj.setdefault("spec", {})
    if isinstance(spec.get("taint"), dict):
        spec["taint"].setdefault("timeAdded", now_text())


def prepare_rule(new: Json, old: Json) -> None:
    """A changed effect is there since now, unless the client states another time."""
    after, before = (new.get("spec") or {}).get("taint") or {}, (old.get("spec") or {}).get("taint") or {}
    if after.get("effect") != before.get("effect") and after.get("timeAdded") == before.get("timeAdded"):
        after["timeAdded"] = now_text()


def taint_rule(obj: Json) -> Causes:
    """A rule."""
    spec = obj.get("spec") or {}
    selector = spec.get("deviceSelector") or {}
    causes: Causes = []
    for name, check in (("driver", driver_name), ("pool", pool_name), ("device", dns_label)):
        if selector.get(name) is not None:
            causes += check(selector[name], f"spec.deviceSelector.{name}")
    return causes + taint(spec.get("taint") or {}, "spec.taint")


def rule_status(new: Json, _: Json) -> Causes:
    """A change of a rule's status."""
    conditions = (new.get("status") or {}).get("conditions") or []
    causes = conditions_of(conditions, "status.conditions")
    if len(conditions) > MAX_RULE_CONDITIONS:
        causes.append(too_many("status.conditions", len(conditions), MAX_RULE_CONDITIONS))
    return causes
