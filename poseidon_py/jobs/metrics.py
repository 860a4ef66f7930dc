"""The metrics of the controller of jobs, beside those of queues and watches."""

from prometheus_client import Counter, Gauge

from poseidon_py.util.metrics import Metrics


class JobMetrics:
    """Registers in the registry of `common`."""

    def __init__(self, common: Metrics) -> None:
        self.common = common
        registry = common.registry
        self.transitions = Counter(
            "poseidon_job_transitions_total",
            "Transitions by machine (job, task, replica) and new state.",
            ["machine", "state"],
            registry=registry,
        )
        self.illegal = Counter(
            "poseidon_job_illegal_transitions_total",
            "Transitions that were observed although the machine does not have them.",
            ["machine", "old", "new"],
            registry=registry,
        )
        self.pods = Counter(
            "poseidon_job_pods_total",
            "Pods of jobs by what was done: created, deleted, refused (by the API server).",
            ["what"],
            registry=registry,
        )
        self.jobs = Gauge("poseidon_jobs", "Jobs by phase.", ["phase"], registry=registry)
