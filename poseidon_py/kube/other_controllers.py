"""Whether another project's controller or scheduler is at work in the cluster.

    its lease was renewed                       a replica of it leads
    a Deployment of it is to have pods          whatever its release is called, and while its pods are replaced
    its webhook configurations stand            the API server asks it about each object

One sign is enough.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from msgspec import Struct, field

from poseidon_py.kube.client import NotFoundError, decode_answer
from poseidon_py.kube.objects import Metadata
from poseidon_py.util.timestamps import instant_of

_LEASES = "/apis/coordination.k8s.io/v1/leases"
_DEPLOYMENTS = "/apis/apps/v1/deployments"
_WEBHOOKS = tuple(
    f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations" for kind in ("validating", "mutating")
)
_DURATION = 15


@dataclass(frozen=True, slots=True)
class Signs:
    """Of one controller, in any namespace. `name`: as people know it; `deployments`: usual names; `labels`: label
    selectors of Deployments; `webhooks`: a label selector of webhook configurations, empty: it has none."""

    name: str
    leases: tuple[str, ...] = ()
    deployments: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    webhooks: str = ""


@dataclass(frozen=True, slots=True)
class Sign:
    """What was found, as a clause, and the namespace in which it is; empty: in none."""

    text: str
    namespace: str = ""


class _LeaseSpec(Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    renew_time: str | None = None


class _Lease(Struct):
    metadata: Metadata
    spec: _LeaseSpec = field(default_factory=_LeaseSpec)


class _Leases(Struct):
    items: list[_Lease] | None = None


class _Replicas(Struct):
    replicas: int | None = None


class _Deployment(Struct):
    metadata: Metadata
    spec: _Replicas = field(default_factory=_Replicas)


class _Deployments(Struct):
    items: list[_Deployment] | None = None


class _Configuration(Struct):
    metadata: Metadata


class _Configurations(Struct):
    items: list[_Configuration] | None = None


class ListApi(Protocol):
    """The part of kube.Kube that is used here."""

    async def page(self, path: str, parameters: Mapping[str, str]) -> bytes: ...


class Detector:
    """Remembers when leases were renewed: the clocks of machines count only for renewals before the first request."""

    def __init__(
        self,
        api: ListApi,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._api = api
        self._monotonic = monotonic
        self._now = now
        self._renewed: dict[str, tuple[str, float]] = {}
        """UID of a lease -> its renew time, and when that was first seen."""

    async def lease(self, signs: Signs, seconds: float = 0.0) -> Sign | None:
        """A lease that was renewed within its last two durations, or within `seconds` if that is longer, whoever held
        it then. Raises KubeError."""
        for name in signs.leases:
            body = await self._api.page(_LEASES, {"fieldSelector": f"metadata.name={name}"})
            for lease in decode_answer(body, _Leases, "leases").items or ():
                spec, where = lease.spec, f"{lease.metadata.namespace}/{name}"
                since = self._monotonic() - self._renewal(lease.metadata.uid, spec.renew_time or "")
                if spec.holder_identity and since < 2.0 * (spec.lease_duration_seconds or _DURATION):
                    return Sign(f"{spec.holder_identity} renews lease {where}", lease.metadata.namespace)
                if since < seconds:
                    return Sign(f"lease {where} was renewed {since:.0f} s ago", lease.metadata.namespace)
        return None

    def _renewal(self, uid: str, renewed: str) -> float:
        """When a lease was renewed, by the monotonic clock."""
        if self._renewed.get(uid, ("", 0.0))[0] != renewed:
            first = uid not in self._renewed
            age = max(self._now() - instant_of(renewed), 0.0) if first else 0.0
            self._renewed[uid] = renewed, self._monotonic() - age
        return self._renewed[uid][1]

    async def deployment(self, signs: Signs) -> Sign | None:
        """A Deployment that is to have pods, even if none of them is ready now. Raises KubeError."""
        selections = [{"fieldSelector": f"metadata.name={name}"} for name in signs.deployments]
        selections += [{"labelSelector": labels} for labels in signs.labels]
        for selection in selections:
            body = await self._api.page(_DEPLOYMENTS, selection)
            for each in decode_answer(body, _Deployments, "deployments").items or ():
                if each.spec.replicas != 0:
                    name = f"{each.metadata.namespace}/{each.metadata.name}"
                    return Sign(f"Deployment {name} is not scaled to 0", each.metadata.namespace)
        return None

    async def webhooks(self, signs: Signs) -> Sign | None:
        """A configuration of webhooks. Raises KubeError."""
        if not signs.webhooks:
            return None
        for path in _WEBHOOKS:
            try:
                body = await self._api.page(path, {"labelSelector": signs.webhooks})
            except NotFoundError:
                continue  # the server has no webhooks
            for each in decode_answer(body, _Configurations, "webhook configurations").items or ():
                return Sign(f"its webhooks are configured ({each.metadata.name})")
        return None
