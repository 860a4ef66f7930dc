"""Everything that can be set about the bridge, in one frozen object. Units are in the names."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True, slots=True)
class Settings:
    """Each field is a flag of `poseidon run` (dashes for underscores) and a key of its --config file."""

    kubeconfig: Path | None = None
    """None: $KUBECONFIG or ~/.kube/config if there, else the credentials of the pod that we run in."""
    context: str | None = None
    """Of the kubeconfig; None: its current one."""
    scheduler_name: tuple[str, ...] = ("poseidon",)
    """Pods whose spec.schedulerName is one of these are placed; all others are only counted."""

    firmament_address: str = ""
    """HOST:PORT of the flow service; empty: one is started and supervised."""
    firmament_ca: Path | None = None
    """PEM authority of that service's certificate; None: no TLS."""
    firmament_cert: Path | None = None
    """PEM certificate to show to it (mutual TLS)."""
    firmament_key: Path | None = None
    """PEM key of that certificate."""
    policy: str = ""
    """Of the own flow service; empty: its default."""
    policy_option: tuple[str, ...] = ()
    """K=V each."""

    usage: str = ""
    """What prices take for used of a node: requests, used, larger. Of the own flow service; empty: its default."""
    usage_samples: int | None = None
    """Kept per pod and per node, by the own flow service; None: its default."""
    usage_half_life: float | None = None
    """Seconds after which a sample counts half, likewise."""
    usage_stale: float | None = None
    """Seconds after which a sample does not count any more, likewise."""
    usage_interval: str = ""
    """Seconds between polls of what pods and nodes use, or off; empty: 30, if the flow service makes use of it."""
    prometheus_url: str = ""
    """Asked for traffic, and for cpu and memory where metrics.k8s.io has them not; empty: not asked."""
    prometheus_token_file: Path | None = None
    """Holds its bearer token; read again for every poll."""
    prometheus_ca: Path | None = None
    """PEM authority of its certificate; None: the system's."""
    prometheus_queries: Mapping[str, str] | None = None
    """By name (usage/prometheus.py) another query than the default one; empty: not asked."""
    bandwidth: str = "auto"
    """Whether pods' bandwidth and nodes' links count: on, off, auto (if the flow service's policy wants it)."""
    link_bandwidth: str = ""
    """Bits a second (a quantity) of the links of nodes that do not say; empty: no limit."""

    leader_elect: bool | None = None
    """None: only when running inside a cluster."""
    lease_name: str = "poseidon"
    lease_namespace: str = "kube-system"
    lease_duration: float = 15.0
    """Seconds for which others keep off a lease that is not renewed."""
    renew_deadline: float = 10.0
    """Seconds after which a leader that cannot renew stops; less than lease_duration."""
    retry_period: float = 2.0
    """Seconds between attempts."""

    health_address: str = "127.0.0.1"
    """Where health, metrics and status are served; anyone who reaches it can read pods' names."""
    health_port: int = 10271
    """0: any free port; -1: do not serve."""

    added_node_affinity: Mapping[str, Any] | None = None
    """A NodeSelector ({nodeSelectorTerms: ...}) that a node must match for every pod, beside what the pod demands."""

    volume_timeout: float = 600.0
    """Seconds for controllers to bind or make the volumes of a pod that was placed."""
    gang_timeout: float = 60.0
    """Seconds for a gang to become whole after its first bind; a PodGroup's scheduleTimeoutSeconds wins."""
    gang_reserve_after: str = ""
    """Seconds that a gang or a single pod waits before room is kept for it, or never. Of the own flow service; empty:
    its default."""
    gang_unwind: str = "evict"
    """What becomes of the bound members of a gang that did not become whole in time: evict, keep."""
    bind_concurrency: int = 100
    """Bind requests in flight at once."""
    bind_timeout: float = 30.0
    """Seconds for one bind request."""
    bind_patience: float = 60.0
    """Seconds for which one placement is retried before it is given back to the engine."""
    batch_window: float = 0.005
    """Seconds to gather work before a round."""
    batch_window_max: float = 0.25
    """Seconds to gather work while it keeps pouring in."""
    batch_size: int = 2000
    """Pods or nodes told to the engine in one call."""
    pod_workers: int = 2
    node_workers: int = 1
    event_rate: float = 1000.0
    """Events and condition patches a second, on top of binds; 0: no limit."""
    event_concurrency: int = 8
    """Of those, requests in flight at once."""

    list_page: int = 2000
    """Objects per page of a list."""
    watch_timeout: float = 300.0
    """Seconds after which the API server is asked to end a watch, so that none lives for ever; up to double that."""
    watch_silence: float = 150.0
    """Seconds without a single byte, bookmarks included, after which a watch is begun again: it may be dead."""

    rpc_timeout: float = 60.0
    """Seconds for one call of the engine."""
    startup_timeout: float = 60.0
    """Seconds to wait for the API server and for the flow service at start."""
    shutdown_timeout: float = 10.0
    """Seconds for binds in flight, and again for pending events, when asked to stop."""

    log_level: str = "info"
    log_format: str = "text"
    """text (key=value) or json (one object per line)."""

    firmament_args: tuple[str, ...] = field(default=())
    """More arguments for the own flow service."""
