"""Poseidon's own annotations and labels. A key with this prefix that is not here is reported as unknown."""

from poseidon_py.conventions import forms
from poseidon_py.conventions.verdicts import HONOURED, ConventionTable, KeyTable, delegated, formed, unneeded

PREFIX = "poseidon.io/"

_STATE = unneeded("this scheduler writes it")
_JOBS = delegated("`poseidon jobs run`")
OF_SYNTHETIC_CLUSTER = delegated("the synthetic cluster")

_TRAITS = {
    f"{PREFIX}interference-class": formed(forms.INTERFERENCE_CLASS),
    f"{PREFIX}program": formed(forms.NAME),
    f"{PREFIX}speed": formed(forms.SPEED),
}
_BANDWIDTH = {f"{PREFIX}{direction}-bandwidth": formed(forms.BANDWIDTH) for direction in ("ingress", "egress")}

OWN = ConventionTable(
    "poseidon",
    "Poseidon",
    pods=KeyTable(
        annotations={
            **_TRAITS,
            f"{PREFIX}gang": formed(forms.GANG),
            f"{PREFIX}gang-min": formed(forms.COUNT),
            f"{PREFIX}gang-max": formed(forms.COUNT),
            f"{PREFIX}gang-topology": formed(forms.LABEL_KEY),
            f"{PREFIX}gang-topology-mode": formed(forms.TOPOLOGY_MODE),
            f"{PREFIX}gang-role": formed(forms.ROLE),
            f"{PREFIX}gang-name": HONOURED,
            f"{PREFIX}gang-match-attribute": formed(forms.ATTRIBUTE),
            f"{PREFIX}data": formed(forms.DATA),
            f"{PREFIX}expected-duration": formed(forms.POSITIVE_DURATION),
            f"{PREFIX}last-checkpoint": formed(forms.TIME),
            f"{PREFIX}movable": formed(forms.SWITCH),
            f"{PREFIX}preempt": formed(forms.SWITCH),
            f"{PREFIX}preemption-notice": formed(forms.DURATION),
            f"{PREFIX}preemption-state": _STATE,
            f"{PREFIX}eviction-time": _STATE,
            f"{PREFIX}preempted-by": _STATE,
            f"{PREFIX}event": _JOBS,
            f"{PREFIX}policies": delegated("`poseidon jobs run`", forms.LIST),
            f"{PREFIX}evicted-at": _STATE,
            **{f"{PREFIX}load-{name}": OF_SYNTHETIC_CLUSTER for name in ("cpu", "memory", "rx", "tx")},
        },
        labels={
            **_TRAITS,
            f"{PREFIX}queue": HONOURED,
            f"{PREFIX}user": HONOURED,
        },
    ),
    objects=KeyTable(
        annotations={
            **_BANDWIDTH,
            f"{PREFIX}user": _JOBS,
            f"{PREFIX}completion-policy": delegated("`poseidon jobs run`", forms.MAPPING),
            f"{PREFIX}main-task": _JOBS,
            f"{PREFIX}retry-policy": delegated("`poseidon jobs run`", forms.MAPPING),
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
            **_BANDWIDTH,
            f"{PREFIX}movable": formed(forms.SWITCH),
            f"{PREFIX}hooks": _STATE,
            f"{PREFIX}hooks-requests": _STATE,
        },
    ),
    words=(PREFIX,),
)
