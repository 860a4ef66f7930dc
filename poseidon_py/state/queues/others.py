"""Finds out whether the controllers and schedulers that kinds of queues belong to run in the cluster."""

import logging
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct, field

from poseidon_py.kube.client import KubeError, decode_answer
from poseidon_py.state.queues.registry import QueueRegistry

log = logging.getLogger(__name__)

DEPLOYMENTS: Mapping[str, tuple[str, ...]] = {
    "kueue": ("kueue-controller-manager",),
    "kai": ("kai-scheduler-default", "kai-scheduler"),
    "volcano": ("volcano-scheduler",),
    "yunikorn": ("yunikorn-scheduler",),
    "elasticquota": ("scheduler-plugins-scheduler",),
}
"""Kind -> names of the Deployments, in any namespace, of which one with an available replica decides by its queues."""
_PATH = "/apis/apps/v1/deployments?fieldSelector=metadata.name%3D"


class OthersApi(Protocol):
    """The part of kube.Kube that the checks use."""

    async def call(self, verb: str, path: str) -> bytes: ...


class _Status(Struct):
    available: int | None = field(default=None, name="availableReplicas")


class _Deployment(Struct):
    status: _Status = field(default_factory=_Status)


class _Deployments(Struct):
    items: list[_Deployment] | None = None


async def check_others(api: OthersApi, registry: QueueRegistry) -> bool:
    """Tells the registry who runs, of the kinds whose objects exist. A check that fails changes nothing. Returns
    whether all succeeded."""
    complete = True
    for kind, names in DEPLOYMENTS.items():
        source = registry.kinds.sources.get(kind)
        if source is None or not source.in_use:
            continue
        try:
            running = [name for name in names if await _runs(api, name)]
        except KubeError as error:
            log.warning("cannot find out whether %s runs: %s", names[0], error)
            complete = False
        else:
            registry.set_running(kind, running[0] if running else "")
    return complete


async def _runs(api: OthersApi, name: str) -> bool:
    found = decode_answer(await api.call("GET", f"{_PATH}{name}"), _Deployments, "deployments")
    return any((each.status.available or 0) > 0 for each in found.items or ())
