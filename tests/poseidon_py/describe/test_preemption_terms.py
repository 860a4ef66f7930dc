"""What pods say about their preemption, and what the scheduler has announced on them."""

import pytest

from poseidon_py.describe.annotations.preemption_terms import (
    SILENT,
    Announcement,
    PreemptionTerms,
    announcement_of,
    is_privileged,
    preemption_terms,
    problem_of,
)
from tests.poseidon_py.builders import pod

COOLDOWN, PROTECTION = "volcano.sh/cooldown-time", "godel.bytedance.com/protection-duration-from-preemption"
KOORDINATOR = "scheduling.koordinator.sh/disable-preemptible"
PREEMPT, NOTICE, VOLCANO = "poseidon.io/preempt", "poseidon.io/preemption-notice", "volcano.sh/preemptable"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, SILENT),
        ({}, SILENT),
        ({"other/preempt": "false"}, SILENT),
        ({PREEMPT: "true"}, PreemptionTerms(True)),
        ({PREEMPT: "false"}, PreemptionTerms(False)),
        ({VOLCANO: "false"}, PreemptionTerms(False)),
        ({VOLCANO: "true"}, SILENT),
        ({VOLCANO: "false", PREEMPT: "true"}, PreemptionTerms(True)),
        ({NOTICE: "10m"}, PreemptionTerms(None, 600.0)),
        ({NOTICE: "90"}, PreemptionTerms(None, 90.0)),
        ({NOTICE: "0"}, PreemptionTerms(None, 0.0)),
        ({PREEMPT: "true", NOTICE: "1h30m"}, PreemptionTerms(True, 5400.0)),
        ({COOLDOWN: "10m"}, PreemptionTerms(protected=600.0)),
        ({PROTECTION: "90"}, PreemptionTerms(protected=90.0)),
        ({PROTECTION: "90", COOLDOWN: "2m"}, PreemptionTerms(protected=120.0)),
    ],
)
def test_what_a_pod_says(annotations, expected):
    described = pod(annotations=annotations)
    assert preemption_terms(described) == expected
    assert problem_of(described) == ""


@pytest.mark.parametrize(
    ("labels", "annotations", "expected"),
    [
        ({KOORDINATOR: "true"}, {}, PreemptionTerms(False)),
        ({KOORDINATOR: "false"}, {}, SILENT),
        ({KOORDINATOR: "true"}, {PREEMPT: "true"}, PreemptionTerms(True)),
        ({}, {KOORDINATOR: "true"}, SILENT),
        ({COOLDOWN: "1m"}, {COOLDOWN: "5m"}, PreemptionTerms(protected=60.0)),
        ({VOLCANO: "false"}, {}, PreemptionTerms(False)),
        ({VOLCANO: "false"}, {VOLCANO: "true"}, SILENT),
        ({VOLCANO: "false", KOORDINATOR: "true"}, {VOLCANO: "true"}, PreemptionTerms(False)),
    ],
)
def test_what_a_pod_says_by_labels(labels, annotations, expected):
    assert preemption_terms(pod(labels=labels, annotations=annotations)) == expected


@pytest.mark.parametrize(
    ("annotations", "expected", "problem"),
    [
        ({PREEMPT: "yes"}, SILENT, "metadata.annotations[poseidon.io/preempt]: 'yes' is ignored; give true or false"),
        (
            {COOLDOWN: "x", PROTECTION: "90"},
            PreemptionTerms(protected=90.0),
            "metadata.annotations[volcano.sh/cooldown-time]: 'x' is not a duration and is ignored; "
            "give one like 90s or 10m",
        ),
        (
            {COOLDOWN: "x"},
            SILENT,
            "metadata.annotations[volcano.sh/cooldown-time]: 'x' is not a duration and is ignored; "
            "give one like 90s or 10m",
        ),
        (
            {PROTECTION: "1.5"},
            SILENT,
            f"metadata.annotations[{PROTECTION}]: '1.5' is ignored; give a whole number of seconds",
        ),
        (
            {NOTICE: "soon", PREEMPT: "false"},
            PreemptionTerms(False),
            "metadata.annotations[poseidon.io/preemption-notice]: 'soon' is not a duration and is ignored; "
            "give one like 90s, 10m or 600",
        ),
        (
            {NOTICE: "-5s", PREEMPT: ""},
            SILENT,
            "metadata.annotations[poseidon.io/preempt]: '' is ignored; give true or false; "
            "metadata.annotations[poseidon.io/preemption-notice]: '-5s' is not a duration and is ignored; "
            "give one like 90s, 10m or 600",
        ),
    ],
)
def test_what_is_invalid_is_ignored_and_named(annotations, expected, problem):
    described = pod(annotations=annotations)
    assert preemption_terms(described) == expected
    assert problem_of(described) == problem


STATE, TIME, BY = "poseidon.io/preemption-state", "poseidon.io/eviction-time", "poseidon.io/preempted-by"


@pytest.mark.parametrize(
    ("annotations", "announced", "privileged"),
    [
        (None, None, False),
        ({TIME: "2026-01-01T00:00:30Z", BY: "ns/p"}, None, False),
        (
            {STATE: "WillEvicted", TIME: "2026-01-01T00:00:30Z", BY: "ns/p"},
            Announcement(1_767_225_630_000_000, "ns/p"),
            False,
        ),
        ({STATE: "WillEvicted", TIME: "tomorrow"}, Announcement(0, ""), False),
        ({STATE: "Privileged"}, None, True),
        ({STATE: "else"}, None, False),
    ],
)
def test_what_is_announced_is_read_again(annotations, announced, privileged):
    described = pod(annotations=annotations)
    assert announcement_of(described) == announced
    assert is_privileged(described) is privileged


def test_the_time_of_an_announcement_is_as_it_is_written():
    written = Announcement(1_767_225_630_000_000, "ns/p")
    assert written.time == "2026-01-01T00:00:30Z"
    assert announcement_of(pod(annotations={STATE: "WillEvicted", TIME: written.time, BY: "ns/p"})) == written
