"""The metrics of the controller of jobs, beside those of queues and watches."""

from poseidon_py.metrics.metrics import ProcessMetrics


class JobMetrics:
    """Registers in the registry of `common`."""

    def __init__(self, common: ProcessMetrics) -> None:
        self.common = common
        make = common.instruments
        self.transitions = make.counter("poseidon_job_transitions_total")
        self.illegal = make.counter("poseidon_job_illegal_transitions_total")
        self.pods = make.counter("poseidon_job_pods_total")
        self.jobs = make.gauge("poseidon_jobs")
