"""What a scheduler says about itself: at /identity, and on the lease while it leads."""

import os
import socket
from collections.abc import Mapping
from typing import Any

from poseidon_py import __version__
from poseidon_py.app.serving.http_endpoints import Probes
from poseidon_py.config.settings import Settings
from poseidon_py.kube.credentials import Access
from poseidon_py.kube.leader.leader_record import LEADER, LeaderRecord
from poseidon_py.kube.lease import SCHEDULER_NAMES


def identity_json(settings: Settings, identity: str, access: Access | None) -> dict[str, Any]:
    """The body of /identity: version, API server, pods that it serves, identity among the replicas. `access` None: it
    has not connected yet."""
    return {
        "version": __version__,
        "server": access.url if access is not None else "",
        "in_cluster": access is not None and access.in_cluster,
        "scheduler_names": list(settings.scheduler_name),
        "identity": identity,
    }


def leader_annotations(
    settings: Settings, identity: str, access: Access, probes: Probes, environment: Mapping[str, str] = os.environ
) -> dict[str, str]:
    """Annotations of the lease: whose pods its holder schedules, and where it answers.

    `probes`: serves its ports already. The chart gives the pod's name in POD_NAME and POD_NAMESPACE; without these it
    is the host name, which is right unless the pod has the network of its node.
    """
    host = socket.gethostname()
    pod = ""
    if access.in_cluster:
        namespace = environment.get("POD_NAMESPACE") or access.namespace
        pod = f"{namespace}/{environment.get('POD_NAME') or host}"
    record = LeaderRecord(
        identity=identity,
        version=__version__,
        host=host,
        pod=pod,
        health=_place(settings.health_address, probes.port),
        secure=_place(settings.bind_address, probes.secure_port),
    )
    return {SCHEDULER_NAMES: ",".join(sorted(settings.scheduler_name)), LEADER: record.annotation()}


def _place(address: str, port: int) -> str:
    """Empty: there is no such port."""
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port}" if port else ""
