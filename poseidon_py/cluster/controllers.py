"""The simulated controllers of a cluster, all together."""

from __future__ import annotations

from poseidon_py.cluster.api import Api
from poseidon_py.cluster.budgets import Budgets
from poseidon_py.cluster.clock import Agenda
from poseidon_py.cluster.definitions import Definitions
from poseidon_py.cluster.deployments import Deployments
from poseidon_py.cluster.event_life import EventLife
from poseidon_py.cluster.garbage import Garbage
from poseidon_py.cluster.jobs import Jobs
from poseidon_py.cluster.kinds import Kinds
from poseidon_py.cluster.kubelets import Kubelets
from poseidon_py.cluster.namespaces import Namespaces
from poseidon_py.cluster.node_life import NodeLife
from poseidon_py.cluster.replica_sets import ReplicaSets
from poseidon_py.cluster.settings import ClusterSettings
from poseidon_py.cluster.stateful_sets import StatefulSets
from poseidon_py.cluster.volumes import Volumes


class Controllers:
    """Starts them all; each one then lives from the store's changes."""

    def __init__(
        self, api: Api, kinds: Kinds, agenda: Agenda, settings: ClusterSettings, kubelets: Kubelets | None
    ) -> None:
        self.definitions = Definitions(api, kinds, agenda)
        self.node_life = NodeLife(api, agenda, settings, kubelets)
        if not settings.controllers:
            return
        self.namespaces = Namespaces(api, agenda)
        self.garbage = Garbage(api, agenda)
        self.jobs = Jobs(api, agenda, settings.job_backoff_seconds)
        self.replica_sets = ReplicaSets(api, agenda)
        self.deployments = Deployments(api, agenda)
        self.stateful_sets = StatefulSets(api, agenda)
        self.budgets = Budgets(api, agenda)
        self.volumes = Volumes(api, agenda)
        self.events = EventLife(api, agenda, settings.max_events)
