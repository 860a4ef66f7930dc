"""Who decides by the queues of a kind: signs of a controller, its absence for a while, and its pods."""

import asyncio
import json
from datetime import UTC, datetime

import pytest

from poseidon_py.describe.queues.model import id_of
from poseidon_py.kube.client import ApiError, NotFoundError
from poseidon_py.state.queues.others import GRACE, KUEUE_LEASE, SIGNS, Others
from tests.poseidon_py.state.queues.kueue_objects import simple
from tests.poseidon_py.state.queues.rig import Rig

NOW = 1_767_225_600.0
LEASES, DEPLOYMENTS = "/apis/coordination.k8s.io/v1/leases", "/apis/apps/v1/deployments"
VALIDATING, MUTATING = (
    f"/apis/admissionregistration.k8s.io/v1/{kind}webhookconfigurations" for kind in ("validating", "mutating")
)
LABEL = {"app.kubernetes.io/name": "kueue"}


class Api:
    """Lists objects with the selectors that are used here."""

    def __init__(self) -> None:
        self.objects: dict[str, list[dict]] = {}
        self.errors: dict[str, Exception] = {}

    async def page(self, path, parameters):
        if path in self.errors:
            raise self.errors[path]
        items = [each for each in self.objects.get(path, ()) if self._selected(each["metadata"], parameters)]
        return json.dumps({"items": items}).encode()

    @staticmethod
    def _selected(metadata, parameters):
        name = parameters.get("fieldSelector", "").removeprefix("metadata.name=")
        key, _, values = parameters.get("labelSelector", "").replace(" in ", "=").partition("=")
        if name and metadata["name"] != name:
            return False
        return not key or metadata.get("labels", {}).get(key) in values.strip("()").split(",")


class Cluster(Rig):
    """With a ClusterQueue, whose controller is there or not."""

    def __init__(self, mode="auto"):
        super().__init__(mode)
        self.queues.kinds.running.clear()
        self.api, self.clock = Api(), 0.0
        self.taken: list[tuple[str, str]] = []
        self.queues.taken_over = lambda *what: self.taken.append(what)
        self.others = Others(self.api, self.queues, monotonic=lambda: self.clock, now=lambda: NOW + self.clock)
        self.put("ResourceFlavor", "on-demand")
        simple(self)
        self.put("LocalQueue", "lq", {"clusterQueue": "team-a"}, namespace="default")

    def exists(self, path, name, labels=None, **fields):
        self.api.objects[path] = [{"metadata": {"name": name, "namespace": "ns", "labels": labels or {}}, **fields}]

    def lease(self, age, holder="manager-0"):
        renewed = datetime.fromtimestamp(NOW + self.clock - age, UTC).isoformat()
        spec = {"holderIdentity": holder, "leaseDurationSeconds": 15, "renewTime": renewed}
        self.exists(LEASES, KUEUE_LEASE, spec=spec)

    def after(self, seconds):
        self.clock += seconds
        complete = asyncio.run(self.others.check())
        self.work()
        return complete


@pytest.mark.parametrize(
    ("path", "name", "fields"),
    [
        pytest.param(DEPLOYMENTS, "kueue-controller-manager", {}, id="deployment"),
        pytest.param(DEPLOYMENTS, "prod-kueue-controller-manager", {"labels": LABEL}, id="other-release"),
        pytest.param(
            DEPLOYMENTS, "kueue-controller-manager", {"status": {"availableReplicas": 0}}, id="being-replaced"
        ),
        pytest.param(VALIDATING, "kueue-validating-webhook-configuration", {"labels": LABEL}, id="validating"),
        pytest.param(MUTATING, "kueue-mutating-webhook-configuration", {"labels": LABEL}, id="mutating"),
    ],
)
def test_one_sign_of_kueue_is_enough(path, name, fields):
    """A Helm release of another name went unseen, and a rollout of 12 seconds let its queues be taken over."""
    rig = Cluster()
    rig.exists(path, name, **fields)
    assert rig.after(0)
    assert rig.queues.kinds.running["kueue"] == "kueue-controller-manager"
    assert rig.kind == "poseidon"


def test_without_any_sign_its_queues_are_in_force_at_once():
    rig = Cluster()
    rig.exists(DEPLOYMENTS, "kueue-controller-manager", spec={"replicas": 0})
    rig.exists(VALIDATING, "other", {"app.kubernetes.io/name": "other"})
    assert rig.kind == "poseidon"
    assert rig.after(0)
    assert rig.kind == "kueue"
    assert rig.taken == []


def test_a_lease_that_was_renewed_within_the_grace_is_a_sign_even_for_a_scheduler_that_starts():
    rig = Cluster()
    rig.lease(GRACE - 1, holder="")
    rig.after(0)
    assert rig.queues.kinds.running["kueue"]
    rig.after(GRACE - 1)
    assert rig.kind == "poseidon"
    rig.after(1)
    assert rig.kind == "kueue"


def test_a_controller_that_is_gone_keeps_its_queues_for_a_while_and_the_takeover_is_told(caplog):
    rig = Cluster()
    rig.exists(DEPLOYMENTS, "kueue-controller-manager")
    rig.after(0)
    rig.api.objects.clear()
    rig.after(30)
    assert "kueue-controller-manager is gone; its queues are taken over in 270 s, unless it comes back" in caplog.text
    rig.after(GRACE - 31)
    assert (rig.kind, rig.taken) == ("poseidon", [])
    rig.exists(DEPLOYMENTS, "kueue-controller-manager")
    rig.after(0)
    rig.api.objects.clear()
    rig.after(GRACE - 1)
    assert rig.kind == "poseidon"
    rig.after(1)
    assert (rig.kind, rig.taken) == ("kueue", [("kueue", "kueue-controller-manager")])
    assert "has been gone for 300 s: its queues are taken over" in caplog.text
    rig.exists(DEPLOYMENTS, "kueue-controller-manager")
    rig.after(30)
    assert rig.kind == "poseidon"


@pytest.mark.parametrize("path", [LEASES, DEPLOYMENTS, VALIDATING])
def test_what_may_not_be_found_out_takes_nothing_over(path, caplog):
    rig = Cluster()
    rig.pod("p", labels={"kueue.x-k8s.io/queue-name": "lq"})
    rig.api.errors[path] = ApiError(403, "Forbidden", "no")
    assert not rig.after(0)
    assert rig.kind == "poseidon"
    assert rig.problem("p") == "queue team-a waits until it is known whether the controller of kind kueue runs"
    assert "whether kueue-controller-manager runs: 403 Forbidden: no; allow that in the ClusterRole" in caplog.text
    rig.api.errors.clear()
    assert rig.after(0)
    assert (rig.kind, rig.problem("p")) == ("kueue", "")


def test_a_server_without_webhooks_has_none_of_kueue():
    rig = Cluster()
    rig.api.errors |= dict.fromkeys((VALIDATING, MUTATING), NotFoundError(404, "NotFound", "no"))
    assert rig.after(0)
    assert rig.kind == "kueue"


@pytest.mark.parametrize(
    ("kind", "labels"),
    [
        pytest.param("kai", {"app": "kai-operator"}, id="kai"),
        pytest.param("volcano", {"app": "volcano-scheduler"}, id="volcano"),
        pytest.param("yunikorn", {"app": "yunikorn"}, id="yunikorn"),
        pytest.param("koordinator", {"koord-app": "koord-scheduler"}, id="koordinator"),
    ],
)
def test_schedulers_of_other_kinds_are_found_by_label_whatever_their_release_is_called(kind, labels):
    rig = Cluster()
    rig.exists(DEPLOYMENTS, "prod-scheduler", labels)
    sign = asyncio.run(rig.others._sign(SIGNS[kind]))
    assert sign is not None
    assert sign.text == "Deployment ns/prod-scheduler is not scaled to 0"


OF_WORKLOADS = [
    pytest.param({"labels": {"kueue.x-k8s.io/managed": "true"}}, id="gated-or-once-gated"),
    pytest.param({"labels": {"kueue.x-k8s.io/podset": "main"}}, id="of-an-admitted-job"),
    pytest.param({"annotations": {"kueue.x-k8s.io/workload": "job-a"}}, id="of-a-workload"),
]


@pytest.mark.parametrize("metadata", OF_WORKLOADS)
def test_pods_of_a_workload_are_kueues_whatever_runs(metadata):
    """While Kueue was replaced, a running pod of an admitted Job was evicted."""
    rig = Cluster()
    rig.after(0)
    assert rig.kind == "kueue"
    labels = {"kueue.x-k8s.io/queue-name": "lq", **metadata.get("labels", {})}
    for name, node in (("waits", None), ("runs", "n")):
        rig.pod(name, labels=labels, annotations=metadata.get("annotations", {}), node=node)
        assert rig.problem(name) == ""
    assert rig.sent("waits").queue == 0  # Kueue has admitted it
    assert rig.sent("runs").queue == id_of("clusterqueue/team-a")  # its use counts
    assert rig.sent("runs").unevictable
    rig.pod("plain", labels={"kueue.x-k8s.io/queue-name": "lq"}, node="n")
    assert not rig.sent("plain").unevictable
