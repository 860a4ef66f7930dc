"""Kueue's configuration, a ConfigMap: admission fair sharing, whether shares are fair, whether workloads that name no
queue wait, and which resources need no quota."""

from dataclasses import dataclass

import msgspec
import yaml

from poseidon_py.conventions.fields import remarks_on
from poseidon_py.conventions.table import kind_table
from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.queue_objects.fields import Fields, Problems, QueueObject, decoded

FILE = "controller_manager_config.yaml"
DEFAULT_SAMPLING = 300.0
_TABLE = kind_table("config.kueue.x-k8s.io", "Configuration")

_Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class AdmissionFairSharing:
    """Seconds; `weights`: of the units that users know (cores, bytes, devices), by resource."""

    half_life: float
    sampling: float
    weights: dict[str, float]


@dataclass(frozen=True, slots=True)
class Configuration:
    sharing: AdmissionFairSharing | None = None
    fair: bool | None = None
    """Whether shares are fair; None: it does not say."""
    manages_all: bool = False
    """Whether workloads that name no queue wait until they do."""
    managed: LabelSelector | None = None
    """Of the namespaces where they do; None: of none."""
    exempt_prefixes: tuple[str, ...] = ()
    """Of the names of resources that no quota counts."""
    ignores_undeclared: bool = False
    """Whether a ClusterQueue does not limit the resources of which it has no quota."""
    device_classes: tuple[_Pairs, _Pairs] = ((), ())
    """Each class of devices with the resource that its devices count as; and each class whose devices are to be counted
    in another way, with why they cannot."""
    problems: tuple[str, ...] = ()
    closed_by: str = ""
    """What cannot be kept of all queues; empty: nothing."""


def configuration(item: QueueObject) -> Configuration:
    problems = Problems()
    text = Fields(decoded(item.data, "data", problems), "data", problems).text(FILE)
    try:
        content = yaml.safe_load(text) if text else {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problems.add(FILE, f"is not YAML: {' '.join(str(error).split())}")
        return Configuration(problems=problems.all)
    whole = Fields(content, "", problems)
    if _TABLE is not None:
        remarks = remarks_on(_TABLE, whole.content)
        problems.extend(remarks.reported)
        for problem in remarks.refused:
            problems.refuse(problem)
    sharing = _admission_fair_sharing(whole)
    fair = whole.part("fairSharing").flag("enable", default=True) if "fairSharing" in whole else None
    manages_all = whole.flag("manageJobsWithoutQueueName", default=False)
    selector = whole.selector("managedJobsNamespaceSelector") or _all_but("kube-system", item.metadata.namespace)
    resources = whole.part("resources")
    exempt = tuple(sorted(set(resources.texts("excludeResourcePrefixes")) - {""}))
    ignores = resources.choice("quotaCheckStrategy", ("BlockUndeclared", "IgnoreUndeclared"), "BlockUndeclared")
    return Configuration(
        sharing,
        fair,
        manages_all,
        selector,
        exempt,
        ignores == "IgnoreUndeclared",
        _device_classes(resources),
        problems.all,
        problems.closing,
    )


def _device_classes(resources: Fields) -> tuple[_Pairs, _Pairs]:
    """Of several mappings of a class the first counts."""
    found: dict[str, str] = {}
    uncounted: dict[str, str] = {}
    for mapping in resources.parts("deviceClassMappings"):
        resource = mapping.text("name")
        for name in mapping.texts("deviceClassNames") if resource else ():
            found.setdefault(name, resource)
            if "sources" in mapping:
                uncounted[name] = f"the sources of {resource} are not counted; map the class without sources"
    return tuple(sorted(found.items())), tuple(sorted(uncounted.items()))


def _all_but(*namespaces: str) -> LabelSelector:
    name = {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": list(namespaces)}
    return msgspec.convert({"matchExpressions": [name]}, LabelSelector)


def _admission_fair_sharing(whole: Fields) -> AdmissionFairSharing | None:
    if "admissionFairSharing" not in whole:
        return None
    given = whole.part("admissionFairSharing")
    sampling = given.duration("usageSamplingInterval", DEFAULT_SAMPLING)
    resources = given.part("resourceWeights")
    weights = {name: resources.number(name, 1.0) for name in resources.names()}
    return AdmissionFairSharing(given.duration("usageHalfLifeTime"), sampling, weights)
