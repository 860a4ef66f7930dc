"""The table of all metrics. docs/metrics.md is generated from it."""

from poseidon_py.metrics.bridge_declarations import BRIDGE, PROCESSES
from poseidon_py.metrics.declarations import catalogue
from poseidon_py.metrics.queue_declarations import HOOKS, JOBS, QUEUES
from poseidon_py.metrics.scheduling_declarations import SCHEDULING

SECTIONS = {
    "Scheduling": SCHEDULING,
    "Queues": QUEUES,
    "Jobs": JOBS,
    "Hooks": HOOKS,
    "The bridge": BRIDGE,
    "Processes": PROCESSES,
}
"""Title -> its metrics, in the order of the page."""
TABLE = catalogue(*SECTIONS.values())
"""By name, with former names."""
