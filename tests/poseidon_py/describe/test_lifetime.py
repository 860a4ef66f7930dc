"""The expected duration of pods."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.describe.lifetime import ANNOTATION, MAX_SECONDS, duration, expected_seconds, problem_of
from poseidon_py.feed.update_rows import describe_pod
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod
from tests.poseidon_py.fakes import Problems


def annotated(text, **spec):
    return pod(annotations={ANNOTATION: text, "other": "1"}, spec=spec)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("1h30m", 5400),
        ("1.5h", 5400),
        (".5m", 30),
        ("5400", 5400),
        ("2.5", 3),  # rounded up: what is expected is not unknown
        ("1ms", 1),
        ("1us", 1),
        ("500µs", 1),
        ("500μs", 1),
        (" 90s ", 90),
        ("1m1m", 120),
        ("99", 99),
        ("1234", 1200),  # two digits count
        ("1251s", 1300),
        ("995h", 3_600_000),
        ("99999999999h", MAX_SECONDS),
    ],
)
def test_durations(text, seconds):
    assert expected_seconds(annotated(text)) == seconds
    assert problem_of(annotated(text)) == ""


BAD = [
    "",
    "0",
    "0s",
    "-5s",
    "soon",
    "5 s",
    "1d",
    "1h-30m",
    "h",
    "s5",
    "1e3",
    "NaN",
    "inf",
    "٣s",
    "1_0",
    "9" * 100,
    "1ns",
    "1h 30m",
    "1.5.2h",
    "+1h",
]


@pytest.mark.parametrize("text", BAD)
def test_an_invalid_duration_counts_as_unknown_and_is_reported(text):
    bad = annotated(text, activeDeadlineSeconds=60)
    assert expected_seconds(bad) == 0
    assert problem_of(bad).startswith(f"metadata.annotations[{ANNOTATION}]: ")
    assert problem_of(bad).endswith("give one like 90s, 1h30m or 5400")


def test_the_annotation_takes_precedence_over_the_deadline():
    assert expected_seconds(pod()) == 0
    assert expected_seconds(pod(spec={"activeDeadlineSeconds": 60})) == 60
    assert expected_seconds(annotated("30s", activeDeadlineSeconds=60)) == 30
    assert problem_of(pod(spec={"activeDeadlineSeconds": 60})) == ""


@pytest.mark.parametrize("annotations", [{"other": ANNOTATION}, {ANNOTATION: 5}, ["x", ANNOTATION]])
def test_similar_annotations_are_ignored(annotations):
    assert expected_seconds(pod(annotations=annotations)) == 0
    assert problem_of(pod(annotations=annotations)) == ""


UNITS = {"us": Fraction(1, 10**6), "ms": Fraction(1, 1000), "s": Fraction(1), "m": Fraction(60), "h": Fraction(3600)}


@given(st.lists(st.tuples(st.integers(0, 9999), st.sampled_from(sorted(UNITS))), min_size=1, max_size=5))
def test_parts_add_up(parts):
    total = sum(count * UNITS[unit] for count, unit in parts)
    text = "".join(f"{count}{unit}" for count, unit in parts)
    if total:
        assert duration(text) == float(total)
    else:
        with pytest.raises(InvalidField):
            duration(text)


def test_all_problems_of_a_pod_are_reported_together():
    store = Store(["poseidon"])
    problems = Problems()
    store.problems.subscribe(problems)
    store.observe_pod(pod(annotations={ANNOTATION: "soon", "poseidon.io/interference-class": "wolf"}))
    (known,) = store.pods.values()
    describe_pod(store, known)
    [(_, ignored)] = problems.ignored
    assert "'soon' is not a duration above 0" in ignored
    assert "'wolf' is not valid" in ignored
    assert known.described.class_id
