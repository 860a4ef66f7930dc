"""The simulated controllers of a cluster, all together."""

from __future__ import annotations

from poseidon_py.cluster.api import Api
from poseidon_py.cluster.clock import Agenda
from poseidon_py.cluster.kinds import Kinds
from poseidon_py.cluster.kubelets import Kubelets
from poseidon_py.cluster.node_life import NodeLife
from poseidon_py.cluster.settings import ClusterSettings


class Controllers:
    """Starts them all; each one then lives from the store's changes."""

    def __init__(
        self, api: Api, kinds: Kinds, agenda: Agenda, settings: ClusterSettings, kubelets: Kubelets | None
    ) -> None:
        self.node_life = NodeLife(api, agenda, settings, kubelets)
