"""Finds out whether the controllers and schedulers that kinds of queues belong to run in the cluster.

One that is gone keeps its queues for a while: it may be replaced, or its node restarted.
"""

import logging
import time
from collections.abc import Callable, Mapping

from poseidon_py.kube.client import ApiError, KubeError
from poseidon_py.kube.other_controllers import Detector, ListApi, Sign, Signs
from poseidon_py.state.queues.registry import QueueRegistry

log = logging.getLogger(__name__)

GRACE = 300.0
"""Seconds for which a controller that is gone keeps its queues, unless settings say otherwise."""
KUEUE_LEASE = "c1f6bfd2.kueue.x-k8s.io"
_NAME = "app.kubernetes.io/name"
SIGNS: Mapping[str, Signs] = {
    "kueue": Signs(
        "kueue-controller-manager",
        (KUEUE_LEASE,),
        ("kueue-controller-manager",),
        (f"{_NAME}=kueue",),
        f"{_NAME}=kueue",
    ),
    "kai": Signs(
        "kai-scheduler",
        deployments=("kai-scheduler-default", "kai-scheduler"),
        labels=(f"{_NAME}=kai-scheduler", "app in (kai-scheduler,kai-scheduler-default,kai-operator)"),
    ),
    "volcano": Signs(
        "volcano-scheduler",
        deployments=("volcano-scheduler",),
        labels=(f"{_NAME}=volcano", "app=volcano-scheduler"),
    ),
    "yunikorn": Signs(
        "yunikorn-scheduler", deployments=("yunikorn-scheduler",), labels=(f"{_NAME}=yunikorn", "app=yunikorn")
    ),
    "elasticquota": Signs(
        "scheduler-plugins-scheduler",
        deployments=("scheduler-plugins-scheduler",),
        labels=(f"{_NAME} in (scheduler-plugins,scheduler-plugins-scheduler)",),
    ),
    "koordinator": Signs("koord-scheduler", deployments=("koord-scheduler",), labels=("koord-app=koord-scheduler",)),
}
"""Kind -> what shows that its controller or scheduler is there, which decides by its queues then."""


class Others:
    """`check` from time to time."""

    def __init__(
        self,
        api: ListApi,
        registry: QueueRegistry,
        grace: float = GRACE,
        *,
        monotonic: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        """`grace`: seconds for which a controller that is gone keeps its queues."""
        self._registry = registry
        self._grace = grace
        self._detector = Detector(api, monotonic=monotonic, now=now)
        self._monotonic = monotonic
        self._seen: dict[str, float] = {}
        """Kind -> when its controller was last seen."""

    async def check(self) -> bool:
        """Tells the registry who runs, of the kinds whose objects exist. A check that fails changes nothing: where
        nothing is known yet, the kind is not in force. Returns whether all succeeded."""
        complete = True
        for kind, source in self._registry.kinds.sources.items():
            signs = SIGNS.get(kind)
            if signs is None or not source.in_use:
                continue
            try:
                sign = await self._sign(signs)
            except KubeError as error:
                denied = isinstance(error, ApiError) and error.code == 403
                remedy = "; allow that in the ClusterRole (docs/rbac.md)" if denied else ""
                log.warning("cannot find out whether %s runs: %s%s", signs.name, error, remedy)
                complete = False
            else:
                self._note(kind, signs.name, sign)
        return complete

    async def _sign(self, signs: Signs) -> Sign | None:
        detector = self._detector
        found = await detector.lease(signs, self._grace)
        return found or await detector.deployment(signs) or await detector.webhooks(signs)

    def _note(self, kind: str, name: str, sign: Sign | None) -> None:
        now = self._monotonic()
        before = self._registry.kinds.running.get(kind)
        if sign is not None:
            self._seen[kind] = now
            if not before:
                log.info("%s is there: %s", name, sign.text)
            self._registry.set_running(kind, name)
            return
        if before and now < self._seen[kind] + self._grace:
            left = self._seen[kind] + self._grace - now
            log.warning("%s is gone; its queues are taken over in %.0f s, unless it comes back", name, left)
            return
        if before:
            log.warning("%s has been gone for %.0f s: its queues are taken over", name, now - self._seen[kind])
        self._registry.set_running(kind, "")
        if before:
            self._registry.taken_over(kind, name)
