"""All settings of the bridge in one frozen object, with their help texts and ranges.

Each field is a key of the `--config` file of `poseidon run` (layout.py says where) and, unless marked otherwise, a flag
(dashes for underscores). Its annotation holds the help text, which names the unit, and the range. The flags, the
validation of the file, its schema and the error messages are generated from these.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from msgspec import Meta

from poseidon_py.config.serving_settings import ServingSettings
from poseidon_py.config.setting import Basis, Count, NotNegative, Positive, setting
from poseidon_py.util.logs import Format, Level


class Settings(ServingSettings, frozen=True, kw_only=True):
    """See the module. Values are not validated here, but by `loading.settings`."""

    kubeconfig: Annotated[
        Path | None,
        setting("Path of the kubeconfig. Default: $KUBECONFIG, then ~/.kube/config, then in-cluster credentials."),
    ] = None
    context: Annotated[
        str | None, setting("Context of the kubeconfig. Default: its current context.", metavar="NAME")
    ] = None
    kube_api_qps: Annotated[
        float,
        setting(
            "Requests to the API server per second, but for those of leases; 0 or less: no limit.", metavar="NUMBER"
        ),
    ] = 0.0
    kube_api_burst: Annotated[Count, setting("Requests that may exceed --kube-api-qps at once.", metavar="COUNT")] = 100
    scheduler_name: Annotated[
        tuple[str, ...],
        setting("spec.schedulerName of the pods to schedule; may be repeated.", metavar="NAME"),
    ] = ("poseidon",)

    policy: Annotated[
        str, setting("Cost policy of the supervised flow service; see `poseidon policies`.", metavar="NAME")
    ] = ""
    policy_option: Annotated[
        tuple[str, ...], setting("Option of the cost policy; may be repeated.", metavar="K=V")
    ] = ()
    usage: Annotated[
        Basis | None,
        setting(
            "Basis of node utilisation in costs: pod requests, measured usage, or whichever is larger.",
            shown="requests",
        ),
    ] = None
    usage_samples: Annotated[
        Count | None, setting("Usage samples kept per pod and per node.", metavar="COUNT", shown="10")
    ] = None
    usage_half_life: Annotated[
        Positive | None,
        setting("Seconds in which the weight of a usage sample halves.", metavar="SECONDS", shown="60"),
    ] = None
    usage_stale: Annotated[
        Positive | None,
        setting("Seconds after which a usage sample is ignored.", metavar="SECONDS", shown="300"),
    ] = None
    usage_interval: Annotated[
        Annotated[float, Meta(ge=1, le=86400)] | Literal["off"] | None,
        setting(
            "Seconds between polls of metrics.k8s.io and Prometheus, or off. Default: 30 if --usage, the policy "
            "or thresholds of a node need measured usage, else off.",
            metavar="SECONDS|off",
        ),
    ] = None
    prometheus_url: Annotated[
        str, setting("URL of a Prometheus server that measures network traffic.", metavar="URL")
    ] = ""
    prometheus_token_file: Annotated[
        Path | None, setting("File with the bearer token for Prometheus; read for every poll.")
    ] = None
    prometheus_ca: Annotated[
        Path | None,
        setting("CA certificate (PEM) for Prometheus. Default: the CAs of the system."),
    ] = None
    prometheus_queries: Annotated[
        Mapping[str, str] | None,
        setting("Queries that replace the default ones, by name; an empty query is not sent.", flag=False),
    ] = None
    bandwidth: Annotated[
        Literal["on", "off", "auto"],
        setting("Whether pod bandwidth and node links are counted; auto: if the policy needs it."),
    ] = "auto"
    link_bandwidth: Annotated[
        str,
        setting(
            "Link speed, such as 10G, of nodes that do not declare one, in bits per second. Default: no limit.",
            metavar="QUANTITY",
        ),
    ] = ""

    firmament_address: Annotated[
        str,
        setting(
            "Address of a flow service, HOST:PORT, unix:PATH or direct:PATH. Default: start and supervise one.",
            metavar="ADDRESS",
        ),
    ] = ""
    firmament_ca_file: Annotated[
        Path | None, setting("CA certificate (PEM) of that flow service; enables TLS. Read again when it changes.")
    ] = None
    firmament_cert_file: Annotated[
        Path | None,
        setting("Client certificate (PEM) for mutual TLS with that flow service; read again when it changes."),
    ] = None
    firmament_key_file: Annotated[Path | None, setting("Private key (PEM) of the client certificate.")] = None
    firmament_insecure: Annotated[
        bool,
        setting(
            "Reach a flow service on another machine without TLS, and let other machines report usage at the "
            "statistics address: everybody on the way can read and change what is placed."
        ),
    ] = False
    stats_address: Annotated[
        str,
        setting(
            "Address where the supervised flow service accepts usage statistics (stats.PoseidonStats), without TLS; "
            "one that is not on loopback needs --firmament-insecure. Default: none.",
            metavar="HOST:PORT",
        ),
    ] = ""

    leader_elect: Annotated[
        bool,
        setting(
            "Elect a leader among replicas. Without an election the process does not start where another one holds the "
            "lease, and stops binding when another one takes it.",
            shown="elect",
        ),
    ] = True
    lease_name: Annotated[str, setting("Name of the leader election lease.", metavar="NAME")] = "poseidon"
    lease_namespace: Annotated[str, setting("Namespace of the lease.", metavar="NAME")] = "kube-system"
    lease_duration: Annotated[
        Positive,
        setting(
            "Lease duration: seconds a standby waits before it takes over a lease that is not renewed.",
            metavar="SECONDS",
        ),
    ] = 15.0
    renew_deadline: Annotated[
        Positive,
        setting("Seconds after which a leader that cannot renew the lease stops leading.", metavar="SECONDS"),
    ] = 10.0
    retry_period: Annotated[
        Positive, setting("Seconds between attempts to acquire or renew the lease.", metavar="SECONDS")
    ] = 2.0

    added_node_affinity: Annotated[
        Mapping[str, Any] | None,
        setting(
            "NodeSelector, as JSON, that nodes must match in addition to a pod's own node affinity.",
            metavar="JSON",
        ),
    ] = None

    default_spreading: Annotated[
        Literal["system", "none", "auto"],
        setting(
            "Whether pods of services and controllers that have no topology spread constraints are spread over nodes "
            "and zones if possible, as by kube-scheduler; auto: if the policy spreads pods."
        ),
    ] = "auto"
    volume_timeout: Annotated[
        Positive,
        setting(
            "Seconds for the volumes of a placed pod to be bound, and for the binding conditions of its devices.",
            metavar="SECONDS",
            flag=False,
        ),
    ] = 600.0
    gangs_from: Annotated[
        tuple[str, ...],
        setting(
            "Kinds of owners whose pods are a gang without any label or annotation, separated by commas: jobs, "
            "jobsets, leaderworkersets, mpijobs, pytorchjobs, tfjobs, xgboostjobs, paddlejobs, jaxjobs, rayclusters, "
            "all or none.",
            metavar="KINDS",
        ),
    ] = ("none",)
    gang_timeout: Annotated[
        Positive,
        setting(
            "Seconds from the first bind of a gang until all of it must be bound; scheduleTimeoutSeconds of a PodGroup "
            "takes precedence.",
            metavar="SECONDS",
        ),
    ] = 60.0
    gang_reserve_after: Annotated[
        NotNegative | Literal["never"] | None,
        setting(
            "Seconds a gang or a single pod waits before capacity is reserved for it, or never.",
            metavar="SECONDS|never",
            shown="300",
        ),
    ] = None
    improve: Annotated[
        Annotated[float, Meta(ge=0, le=100)] | None,
        setting(
            "Effort of placing pods anew where a round leaves some that would have fitted, as a multiple of the "
            "usual. 0: none.",
            metavar="TIMES",
            shown="1",
        ),
    ] = None
    preemption: Annotated[
        Literal["on", "off"],
        setting("Whether pods of higher priority may evict pods of lower priority."),
    ] = "on"
    preempt_beyond_budgets: Annotated[
        bool,
        setting("Evict pods beyond their disruption budgets if nothing else makes a pod fit, as kube-scheduler does."),
    ] = False
    preemption_notice: Annotated[
        NotNegative,
        setting(
            "Seconds between the announcement of a preemption and the preemption, unless the queue of the pod or its "
            "annotation poseidon.io/preemption-notice gives another time. 0: pods are preempted at once.",
            metavar="SECONDS",
        ),
    ] = 0.0
    longest_preemption_notice: Annotated[
        NotNegative,
        setting(
            "Longest notice that the annotation poseidon.io/preemption-notice of a pod may ask for.", metavar="SECONDS"
        ),
    ] = 3600.0
    protected_priority_classes: Annotated[
        tuple[str, ...],
        setting(
            "PriorityClasses whose pods are not preempted, unless their annotation poseidon.io/preempt says otherwise.",
            metavar="NAME,...",
        ),
    ] = ()
    migrate: Annotated[
        Literal["never", "for-waiting", "always"],
        setting(
            "When running pods that opted in are evicted, and placed on other nodes. for-waiting: if that makes "
            "pending pods fit. always: also if another node costs less by the policy, by more than what moving costs."
        ),
    ] = "for-waiting"
    migrate_after: Annotated[
        NotNegative | None,
        setting("Seconds a pod runs before it may be moved.", metavar="SECONDS", shown="600"),
    ] = None
    moves_at_once: Annotated[
        Count | None,
        setting("Limit on the pods that are on their way to other nodes.", metavar="COUNT", shown="16"),
    ] = None
    moves_per_hour: Annotated[
        Annotated[int, Meta(ge=0)] | None,
        setting("How many pods may be moved in an hour; 0: any number.", metavar="COUNT", shown="0"),
    ] = None
    devices: Annotated[
        Literal["auto", "off"],
        setting("Whether device claims are served. auto: where there is resource.k8s.io. off: their pods wait."),
    ] = "auto"
    queues: Annotated[
        Literal["off", "auto", "kueue", "kai", "volcano", "yunikorn", "elasticquota", "koordinator", "poseidon"],
        setting(
            "Kind of queues whose quotas count: off, kueue, kai, volcano, yunikorn, elasticquota, koordinator or "
            "poseidon; auto: the first of these that is installed and has objects, and whose own scheduler does not "
            "run.",
            metavar="KIND",
        ),
    ] = "auto"
    queue_unit: Annotated[
        Literal["workload", "pod"],
        setting(
            "What queues of Kueue admit: workload: all pods of an owner with a queue label together, or none; pod: "
            "each pod by itself."
        ),
    ] = "workload"
    queue_takeover_after: Annotated[
        NotNegative,
        setting(
            "Seconds after which queues are taken over whose own controller is gone, which may come back.",
            metavar="SECONDS",
        ),
    ] = 300.0
    suspend_workloads: Annotated[
        Literal["on", "off"],
        setting(
            "Whether owners of pods, such as Jobs, are suspended when all of their pods are evicted, and resumed when "
            "their turn comes; with Kueue's queues also those that users create suspended."
        ),
    ] = "on"
    resumed_pods: Annotated[
        Count,
        setting(
            "Suspended workloads are resumed as long as no more than so many pods of their queue are pending.",
            metavar="COUNT",
        ),
    ] = 1000
    queue_drain_rate: Annotated[
        Positive,
        setting("Limit on the pods that are evicted in a second from queues that drain.", metavar="NUMBER"),
    ] = 10.0
    queue_half_life: Annotated[
        NotNegative | None,
        setting(
            "Half-life of the past use of queues, for shares of queues by weight and for Kueue's admission fair "
            "sharing; 0: past use does not count. Default: as KAI's SchedulingShard or Kueue's configuration say, "
            "else 0.",
            metavar="SECONDS",
        ),
    ] = None
    queue_usage_weight: Annotated[
        NotNegative | None,
        setting(
            "How strongly past use lowers the weight of a queue: KAI's kValue. Default: that of the SchedulingShard, "
            "else 1.",
            metavar="NUMBER",
        ),
    ] = None
    yunikorn_queues: Annotated[
        Path | None,
        setting("File with YuniKorn's queues.yaml. Default: the ConfigMap yunikorn-configs."),
    ] = None
    ended_jobs: Annotated[
        Annotated[int, Meta(ge=0)],
        setting("Maximum number of ended jobs that `poseidon jobs` shows.", metavar="COUNT"),
    ] = 1000
    ended_jobs_seconds: Annotated[
        NotNegative, setting("Seconds for which ended jobs are shown.", metavar="SECONDS")
    ] = 3600.0
    hooks: Annotated[
        Path | None,
        setting("File with HTTP endpoints that are called on transitions of jobs, tasks and replicas: docs/hooks.md."),
    ] = None
    gang_unwind: Annotated[
        Literal["evict", "keep"],
        setting("What happens to the bound pods of a gang that is not bound in time."),
    ] = "evict"
    bind_concurrency: Annotated[Count, setting("Maximum number of bind requests in flight.", metavar="COUNT")] = 100
    bind_timeout: Annotated[
        Positive, setting("Timeout of a bind request in seconds.", metavar="SECONDS", flag=False)
    ] = 30.0
    bind_patience: Annotated[
        NotNegative, setting("Seconds for which the bind of one placement is retried.", metavar="SECONDS", flag=False)
    ] = 60.0
    batch_window: Annotated[
        NotNegative, setting("Seconds to collect changes before a round while more arrive.", metavar="SECONDS")
    ] = 0.005
    batch_window_max: Annotated[
        NotNegative,
        setting("Maximum number of seconds to collect changes while more keep arriving.", metavar="SECONDS"),
    ] = 0.25
    batch_size: Annotated[
        Count, setting("Maximum number of pods or nodes in one call of the flow service.", flag=False)
    ] = 2000
    pod_workers: Annotated[Count, setting("Workers of the queue of pods.", flag=False)] = 2
    node_workers: Annotated[Count, setting("Workers of the queue of nodes.", flag=False)] = 1
    event_rate: Annotated[
        NotNegative,
        setting("Maximum number of events and pod condition patches per second. 0: no limit.", metavar="RATE"),
    ] = 1000.0
    event_concurrency: Annotated[
        Count, setting("Maximum number of event and pod condition requests in flight.", flag=False)
    ] = 8

    list_page: Annotated[Count, setting("Objects per page of a list request.", flag=False)] = 2000
    watch_timeout: Annotated[
        Positive,
        setting("Seconds, at most doubled, after which the API server ends a watch.", metavar="SECONDS", flag=False),
    ] = 300.0
    watch_silence: Annotated[
        Positive,
        setting(
            "Seconds without a byte, bookmarks included, after which a watch is started again.",
            metavar="SECONDS",
            flag=False,
        ),
    ] = 150.0

    rpc_timeout: Annotated[
        Positive, setting("Timeout of a call of the flow service in seconds.", metavar="SECONDS", flag=False)
    ] = 60.0
    startup_timeout: Annotated[
        Positive,
        setting("Seconds to wait at startup for the API server and the flow service.", metavar="SECONDS"),
    ] = 60.0
    shutdown_timeout: Annotated[
        NotNegative,
        setting("Seconds to wait at shutdown for binds in flight, and again for pending events.", metavar="SECONDS"),
    ] = 10.0

    log_level: Annotated[Level, setting("Lowest level of the messages that are logged.")] = "info"
    log_format: Annotated[Format, setting("Format of the log: key=value lines, or one JSON object per line.")] = "text"

    firmament_args: Annotated[
        tuple[str, ...], setting("Additional arguments of the supervised flow service.", flag=False)
    ] = ()
