"""Kueue's configuration, of which admission fair sharing is read: a ConfigMap."""

from dataclasses import dataclass

import yaml

from poseidon_py.conventions.fields import remarks_on
from poseidon_py.conventions.table import kind_table
from poseidon_py.kube.queue_objects.fields import Fields, Problems, QueueObject, decoded

FILE = "controller_manager_config.yaml"
DEFAULT_SAMPLING = 300.0
_TABLE = kind_table("config.kueue.x-k8s.io", "Configuration")


@dataclass(frozen=True, slots=True)
class AdmissionFairSharing:
    """Seconds; `weights`: of the units that users know (cores, bytes, devices), by resource."""

    half_life: float
    sampling: float
    weights: dict[str, float]


@dataclass(frozen=True, slots=True)
class Configuration:
    sharing: AdmissionFairSharing | None
    problems: tuple[str, ...]


def configuration(item: QueueObject) -> Configuration:
    problems = Problems()
    text = Fields(decoded(item.data, "data", problems), "data", problems).text(FILE)
    try:
        content = yaml.safe_load(text) if text else {}
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        problems.add(FILE, f"is not YAML: {' '.join(str(error).split())}")
        return Configuration(None, problems.all)
    whole = Fields(content, "", problems)
    if _TABLE is not None:
        remarks = remarks_on(_TABLE, whole.content)
        problems.extend(remarks.reported + remarks.refused)
    if "admissionFairSharing" not in whole:
        return Configuration(None, problems.all)
    given = whole.part("admissionFairSharing")
    sampling = given.duration("usageSamplingInterval", DEFAULT_SAMPLING)
    resources = given.part("resourceWeights")
    weights = {name: resources.number(name, 1.0) for name in resources.names()}
    sharing = AdmissionFairSharing(given.duration("usageHalfLifeTime"), sampling, weights)
    return Configuration(sharing, problems.all)
