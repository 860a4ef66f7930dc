"""Poseidon's own annotations and labels. A key with this prefix that is not here is reported as unknown."""

from poseidon_py.conventions.verdicts import HONOURED, ConventionTable, KeyTable, delegated, unneeded

PREFIX = "poseidon.io/"

_STATE = unneeded("this scheduler writes it")
_JOBS = delegated("`poseidon jobs run`")
_SYNTHETIC = delegated("the synthetic cluster")

_TRAITS = {f"{PREFIX}{name}": HONOURED for name in ("interference-class", "program", "speed")}

OWN = ConventionTable(
    "poseidon",
    "Poseidon",
    pods=KeyTable(
        annotations={
            **_TRAITS,
            f"{PREFIX}gang": HONOURED,
            f"{PREFIX}gang-min": HONOURED,
            f"{PREFIX}gang-max": HONOURED,
            f"{PREFIX}gang-topology": HONOURED,
            f"{PREFIX}gang-topology-mode": HONOURED,
            f"{PREFIX}gang-role": HONOURED,
            f"{PREFIX}gang-name": HONOURED,
            f"{PREFIX}data": HONOURED,
            f"{PREFIX}expected-duration": HONOURED,
            f"{PREFIX}last-checkpoint": HONOURED,
            f"{PREFIX}movable": HONOURED,
            f"{PREFIX}preempt": HONOURED,
            f"{PREFIX}preemption-notice": HONOURED,
            f"{PREFIX}preemption-state": _STATE,
            f"{PREFIX}eviction-time": _STATE,
            f"{PREFIX}preempted-by": _STATE,
            f"{PREFIX}event": _JOBS,
            f"{PREFIX}policies": _JOBS,
            f"{PREFIX}evicted-at": _STATE,
            **{
                f"{PREFIX}{name}": _SYNTHETIC
                for name in (
                    "exit-code",
                    "fail-first",
                    "run-seconds",
                    "start-seconds",
                    "stop-seconds",
                    "load-cpu",
                    "load-memory",
                    "load-rx",
                    "load-tx",
                )
            },
        },
        labels={
            **_TRAITS,
            f"{PREFIX}queue": HONOURED,
            f"{PREFIX}user": HONOURED,
        },
    ),
    objects=KeyTable(
        annotations={
            f"{PREFIX}ingress-bandwidth": HONOURED,
            f"{PREFIX}egress-bandwidth": HONOURED,
            f"{PREFIX}completion-policy": _JOBS,
            f"{PREFIX}main-task": _JOBS,
            f"{PREFIX}retry-policy": _JOBS,
            f"{PREFIX}resume": HONOURED,
            f"{PREFIX}suspended": _STATE,
            f"{PREFIX}ran-seconds": _STATE,
            f"{PREFIX}handled": _STATE,
            f"{PREFIX}transitions": _STATE,
            f"{PREFIX}task.*": _STATE,
            f"{PREFIX}retries.*": _STATE,
            f"{PREFIX}noted.*": _STATE,
            f"{PREFIX}hooks-holder": _STATE,
            f"{PREFIX}hooks-lease": _STATE,
            f"{PREFIX}scheduler-names": _STATE,
            f"{PREFIX}leader": _STATE,
        },
        labels={
            f"{PREFIX}ingress-bandwidth": HONOURED,
            f"{PREFIX}egress-bandwidth": HONOURED,
            f"{PREFIX}hooks": _STATE,
            f"{PREFIX}hooks-requests": _STATE,
        },
    ),
    words=(PREFIX,),
)
