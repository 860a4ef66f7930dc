"""The simulated controllers of a cluster, all together."""

from __future__ import annotations

from benchmarks.cluster.api.verbs import Api
from benchmarks.cluster.controllers.budgets import Budgets
from benchmarks.cluster.controllers.definitions import Definitions
from benchmarks.cluster.controllers.deployments import Deployments
from benchmarks.cluster.controllers.devices.claim_controller import ClaimController
from benchmarks.cluster.controllers.devices.taint_eviction import TaintEviction
from benchmarks.cluster.controllers.event_expiry import EventLife
from benchmarks.cluster.controllers.garbage import Garbage
from benchmarks.cluster.controllers.jobs import Jobs
from benchmarks.cluster.controllers.namespaces import Namespaces
from benchmarks.cluster.controllers.node_health import NodeLife
from benchmarks.cluster.controllers.replica_sets import ReplicaSets, ReplicationControllers
from benchmarks.cluster.controllers.stateful_sets import StatefulSets
from benchmarks.cluster.controllers.volumes import Volumes
from benchmarks.cluster.nodes.devices.inventory import Inventory
from benchmarks.cluster.nodes.kubelets import Kubelets
from benchmarks.cluster.settings import ClusterSettings
from benchmarks.cluster.store.clock import Agenda
from benchmarks.cluster.store.kinds import Kinds


class Controllers:
    """Starts all controllers; each then follows the changes of the store."""

    def __init__(
        self,
        api: Api,
        kinds: Kinds,
        agenda: Agenda,
        settings: ClusterSettings,
        kubelets: Kubelets | None,
        inventory: Inventory,
    ) -> None:
        self.definitions = Definitions(api, kinds, agenda)
        self.node_life = NodeLife(api, agenda, settings, kubelets)
        if not settings.controllers:
            return
        self.namespaces = Namespaces(api, agenda)
        self.garbage = Garbage(api, agenda)
        self.jobs = Jobs(api, agenda, settings.job_backoff_seconds)
        self.replica_sets = ReplicaSets(api, agenda)
        self.replication_controllers = ReplicationControllers(api, agenda)
        self.deployments = Deployments(api, agenda)
        self.stateful_sets = StatefulSets(api, agenda)
        self.budgets = Budgets(api, agenda)
        self.volumes = Volumes(api, agenda)
        self.resource_claims = ClaimController(api, agenda)
        self.device_taints = TaintEviction(api, agenda, inventory)
        self.events = EventLife(api, agenda, settings.max_events)
