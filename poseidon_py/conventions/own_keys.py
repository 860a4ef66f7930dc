"""What Poseidon's own annotations and labels mean. docs/annotations.md is generated from it.

tables/own.py says which keys there are; tests compare the two.
"""

from dataclasses import dataclass
from enum import StrEnum


class Author(StrEnum):
    """Who writes a key."""

    USER = "user"
    POSEIDON = "Poseidon"
    SYNTHETIC = "user of the synthetic cluster"


@dataclass(frozen=True, slots=True)
class OwnKey:
    """`name`: without the prefix; `of`: the kinds of objects; `values`: their form; `page`: where more is said."""

    name: str
    of: str
    values: str
    meaning: str
    page: str
    author: Author = Author.USER


_PODS, _JOBS = "pods", "Jobs of Volcano"
_GANG_ON = "owners of pods, pods"

OWN_KEYS = (
    # -- gangs -------------------------------------------------------------------------------------------------------
    OwnKey(
        "gang", _GANG_ON, "`all`, or a number", "The pods of the owner are a gang, and how many it has.", "gangs.md"
    ),
    OwnKey("gang-min", _GANG_ON, "a number", "The minimum of the gang; further pods are elastic.", "gangs.md"),
    OwnKey("gang-max", _GANG_ON, "a number", "Its maximum; further pods wait.", "gangs.md"),
    OwnKey(
        "gang-topology", _GANG_ON, "key of a node label", "The minimum is placed where it has one value.", "gangs.md"
    ),
    OwnKey("gang-topology-mode", _GANG_ON, "`required`, `preferred`", "Whether it waits for such nodes.", "gangs.md"),
    OwnKey(
        "gang-role", _PODS, "`NAME` or `NAME=MINIMUM`", "The role of the pod, with a minimum of its own.", "gangs.md"
    ),
    OwnKey("gang-name", _GANG_ON, "a name", "A gang of several owners, or of pods without one.", "gangs.md"),
    OwnKey(
        "gang-match-attribute",
        _PODS,
        "`DOMAIN/NAME`",
        "All devices of the gang's claims have one value of this attribute.",
        "devices.md",
    ),
    # -- queues ------------------------------------------------------------------------------------------------------
    OwnKey("queue", f"{_PODS} (label)", "the name of a queue", "The queue of the pod.", "queues.md"),
    OwnKey(
        "user", f"{_PODS} (label), {_JOBS}", "a name", "Whose pod it is, in figures of jobs and in hooks.", "jobs.md"
    ),
    OwnKey("resume", "workloads", '`"false"`', "The suspended workload stays suspended.", "queues.md"),
    # -- preemption and moves ----------------------------------------------------------------------------------------
    OwnKey("preempt", _PODS, '`"true"`, `"false"`', "Whether the pod may be preempted.", "delayed-preemption.md"),
    OwnKey(
        "preemption-notice", _PODS, "such as `90s`, `10m`", "How long before, it is announced.", "delayed-preemption.md"
    ),
    OwnKey("last-checkpoint", _PODS, "a time of RFC 3339", "When it saved its work last.", "bridge.md"),
    OwnKey(
        "movable",
        f"{_PODS}, namespaces (label)",
        '`"true"`, `"false"`',
        "Whether it may move to another node.",
        "bridge.md",
    ),
    # -- what policies read ------------------------------------------------------------------------------------------
    OwnKey("expected-duration", _PODS, "such as `90m`", "For how long it is expected to run.", "policies.md"),
    OwnKey("data", _PODS, "a list of inputs", "The data that it reads, and where that is.", "policies.md"),
    OwnKey(
        "interference-class",
        f"{_PODS} (also a label)",
        "`sheep`, `rabbit`, `devil`, `turtle`",
        "How it disturbs others, and is disturbed.",
        "policies.md",
    ),
    OwnKey("program", f"{_PODS} (also a label)", "a name", "Pods with the same one do the same work.", "policies.md"),
    OwnKey("speed", f"{_PODS} (also a label)", "`PLATFORM=NUMBER, ...`", "Its speed on platforms.", "policies.md"),
    OwnKey("ingress-bandwidth", "nodes (also a label)", "such as `10G`", "What its link receives a second.", ""),
    OwnKey("egress-bandwidth", "nodes (also a label)", "such as `10G`", "What its link sends a second.", "policies.md"),
    # -- poseidon jobs run -------------------------------------------------------------------------------------------
    OwnKey("main-task", _JOBS, "the name of a task", "Its success completes the job.", "jobs.md"),
    OwnKey("completion-policy", _JOBS, "JSON", "When a task has succeeded or failed.", "jobs.md"),
    OwnKey("retry-policy", _JOBS, "JSON", "How the job and its pods are retried.", "jobs.md"),
    OwnKey("policies", f"{_JOBS}, pods", "JSON", "Further policies, for custom events.", "jobs.md"),
    OwnKey("event", f"{_JOBS}, pods", "the name of an event", "Raises this custom event once.", "jobs.md"),
    # -- what Poseidon writes ----------------------------------------------------------------------------------------
    OwnKey(
        "preemption-state",
        _PODS,
        "`Privileged`, `WillEvicted`",
        "It waits for announced evictions; its own eviction is announced.",
        "delayed-preemption.md",
        Author.POSEIDON,
    ),
    OwnKey("eviction-time", _PODS, "a time", "When it will be evicted.", "delayed-preemption.md", Author.POSEIDON),
    OwnKey("preempted-by", _PODS, "`NAMESPACE/NAME`", "For which pod.", "delayed-preemption.md", Author.POSEIDON),
    OwnKey("evicted-at", _PODS, "a time", "When `poseidon jobs run` saw that it was evicted.", "", Author.POSEIDON),
    OwnKey("suspended", "workloads", "JSON", "Why and since when it is suspended.", "queues.md", Author.POSEIDON),
    OwnKey("ran-seconds", "workloads", "a number", "For how long it had run before.", "", Author.POSEIDON),
    OwnKey("handled", _JOBS, "a token", "The command or event that was carried out last.", "jobs.md", Author.POSEIDON),
    OwnKey("transitions", _JOBS, "a number", "The number of its last transition.", "jobs.md", Author.POSEIDON),
    OwnKey("task.*", _JOBS, "a state", "The state of a task.", "jobs.md", Author.POSEIDON),
    OwnKey("retries.*", _JOBS, "a number", "The retries of a pod.", "jobs.md", Author.POSEIDON),
    OwnKey("noted.*", _JOBS, "JSON", "A transition that hooks may not have been told yet.", "jobs.md", Author.POSEIDON),
    OwnKey("hooks", "ConfigMaps (label)", "a name", "Stored deliveries of hooks.", "hooks.md", Author.POSEIDON),
    OwnKey("hooks-requests", "ConfigMaps (label)", "a name", "Requests of `poseidon hooks`.", "", Author.POSEIDON),
    OwnKey("hooks-holder", "ConfigMaps", "an identity", "Who writes the deliveries.", "", Author.POSEIDON),
    OwnKey("hooks-lease", "ConfigMaps", "`NAMESPACE/NAME`", "Whose deliveries they are.", "hooks.md", Author.POSEIDON),
    OwnKey("scheduler-names", "Leases", "names", "Whose pods the holder schedules.", "bridge.md", Author.POSEIDON),
    OwnKey("leader", "Leases", "JSON", "Where the holder answers.", "kubectl.md", Author.POSEIDON),
    # -- the synthetic cluster ---------------------------------------------------------------------------------------
    *(
        OwnKey(name, _PODS, values, meaning, "synthetic-cluster.md", Author.SYNTHETIC)
        for name, values, meaning in (
            ("load-cpu", "such as `0.5`", "The share of its request that it uses."),
            ("load-memory", "such as `0.5`", "The share of its request that it uses."),
            ("load-rx", "a rate", "What it receives."),
            ("load-tx", "a rate", "What it sends."),
        )
    ),
)
