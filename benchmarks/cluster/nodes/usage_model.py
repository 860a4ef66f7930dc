"""Plausible usage of a running pod at any time: a stateless function of the pod, the time and a seed.

    cpu      base x (1 + 0.25 x wave + 0.1 x noise) of its request    wave: period of 5 to 9 min, and phase, per pod
    memory   base x (0.3 + 0.7 x (1 - e**(-age / 2 min)) + 0.02 x wave) of its request
    traffic  base x (1 + 0.25 x wave + 0.1 x noise), asymmetric in the two directions

`base` is drawn from a beta distribution whose mean, 0.2 to 0.8, all pods of an owner share: replicas of one application
are alike, applications are not. `noise` changes every 15 s. Annotations on the pod replace a figure, exactly:

    poseidon.io/load-cpu, load-memory    share of its request, such as "0.5"
    poseidon.io/load-rx, load-tx         bytes a second, such as "10M"
"""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import xxhash

from benchmarks.cluster.store.clock import parse_rfc3339
from benchmarks.cluster.store.quantities import parse, units

Json = dict[str, Any]

ANNOTATION = "poseidon.io/load-"
NOISE_SECONDS = 15
_RAMP_SECONDS = 120.0
_CONCENTRATION = 8.0
_BEST_EFFORT_CPU_MILLI = 20
_BEST_EFFORT_MEMORY_BYTES = 32 * 2**20
_TRAFFIC = 50_000.0  # bytes a second, the median of a direction


class Amounts(NamedTuple):
    """Millicores, bytes, bytes a second."""

    cpu: float = 0.0
    memory: float = 0.0
    rx: float = 0.0
    tx: float = 0.0

    def plus(self, other: Amounts) -> Amounts:
        return Amounts(*(a + b for a, b in zip(self, other, strict=True)))


@dataclass(frozen=True, slots=True)
class Profile:
    """The part of a pod's usage that does not depend on the time."""

    version: int
    """The resourceVersion of the pod from which it was made."""
    key: bytes
    started: float
    containers: tuple[tuple[str, int, int], ...]
    """Name, millicores and bytes requested."""
    base: Amounts
    """cpu and memory as shares of requests."""
    stated: tuple[bool, bool, bool, bool]
    """The figures that annotations set."""
    phase: float
    period: float

    def shares(self, at: float) -> Amounts:
        """cpu and memory as shares of requests, and traffic, at Unix seconds `at`."""
        wave = math.sin(2 * math.pi * (at / self.period + self.phase))
        noise = _unit(self.key + str(int(at // NOISE_SECONDS)).encode()) * 2 - 1
        busy = 1 + 0.25 * wave + 0.1 * noise
        grown = 0.3 + 0.7 * (1 - math.exp(-max(at - self.started, 0.0) / _RAMP_SECONDS)) + 0.02 * wave
        factors = (busy, grown, busy, busy)
        return Amounts(*(b if stated else b * f for b, stated, f in zip(self.base, self.stated, factors, strict=True)))

    def uses(self, at: float) -> Amounts:
        """All containers together."""
        shares = self.shares(at)
        cpu = sum(cpu for _, cpu, _ in self.containers) * shares.cpu
        memory = sum(memory for _, _, memory in self.containers) * shares.memory
        return Amounts(cpu, memory, shares.rx, shares.tx)


def profile(pod: Json, version: int, seed: int) -> Profile:
    """The profile of a running pod."""
    metadata = pod["metadata"]
    annotations = metadata.get("annotations") or {}
    owner = next((o["uid"] for o in metadata.get("ownerReferences") or () if o.get("controller")), metadata["uid"])
    key = f"{seed}/{metadata['uid']}".encode()
    shared, own = random.Random(f"{seed}/{owner}"), random.Random(key)
    drawn = [_beta(own, 0.2 + 0.6 * shared.random()) for _ in ("cpu", "memory")]
    drawn += [_TRAFFIC * shared.lognormvariate(0.0, 1.5) * _beta(own, 0.5) for _ in ("rx", "tx")]
    stated = [_stated(annotations, name) for name in Amounts._fields]
    containers = []
    for container in pod["spec"]["containers"]:
        requests = (container.get("resources") or {}).get("requests") or {}
        cpu = units("cpu", requests["cpu"]) if "cpu" in requests else _BEST_EFFORT_CPU_MILLI
        memory = units("memory", requests["memory"]) if "memory" in requests else _BEST_EFFORT_MEMORY_BYTES
        containers.append((container["name"], cpu, memory))
    begun = (pod.get("status") or {}).get("startTime") or metadata["creationTimestamp"]
    return Profile(
        version,
        key,
        parse_rfc3339(begun),
        tuple(containers),
        Amounts(*(d if s is None else s for d, s in zip(drawn, stated, strict=True))),
        (stated[0] is not None, stated[1] is not None, stated[2] is not None, stated[3] is not None),
        own.random(),
        own.uniform(300.0, 540.0),
    )


def _beta(rng: random.Random, mean: float) -> float:
    return rng.betavariate(_CONCENTRATION * mean, _CONCENTRATION * (1 - mean))


def _stated(annotations: Mapping[str, str], name: str) -> float | None:
    """The value of an annotation; None if it is absent or invalid."""
    try:
        value = float(parse(annotations[ANNOTATION + name]))
    except (KeyError, ValueError):
        return None
    return value if value >= 0 else None


def _unit(key: bytes) -> float:
    """A pseudo-random number in 0 .. 1 for a key."""
    return xxhash.xxh64_intdigest(key) / 2**64
