"""What annotations of PriorityClasses, and of pods, say about who may preempt a pod."""

import pytest

from poseidon_py.describe.annotations.class_terms import (
    GODEL,
    NO_OPT_OUTS,
    SILENT_CLASS,
    YUNIKORN,
    ClassTerms,
    class_terms,
    opted_out,
)
from poseidon_py.describe.annotations.preemption_terms import PreemptionTerms, preemption_terms, problem_of
from tests.poseidon_py.builders import pod

NEW, OLD = (f"preemption-toleration.scheduling.{group}" for group in ("x-k8s.io", "sigs.k8s.io"))
MINIMUM, SECONDS = "minimum-preemptable-priority", "toleration-seconds"


def terms(annotations):
    return class_terms(pod(annotations=annotations).metadata)


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        (None, SILENT_CLASS),
        ({"other/preempt": "false"}, SILENT_CLASS),
        ({YUNIKORN: "false"}, ClassTerms((False, None))),
        ({YUNIKORN: "true"}, ClassTerms((True, None))),
        ({GODEL: "false"}, ClassTerms((None, False))),
        ({GODEL: "true"}, ClassTerms((None, True))),
        ({f"{NEW}/{MINIMUM}": "1000", f"{NEW}/{SECONDS}": "60"}, ClassTerms(NO_OPT_OUTS, 1000, 60)),
        ({f"{OLD}/{MINIMUM}": "-5", f"{OLD}/{SECONDS}": "-1"}, ClassTerms(NO_OPT_OUTS, -5, -1)),
        ({f"{OLD}/{SECONDS}": "60", f"{NEW}/{SECONDS}": "+70"}, ClassTerms(NO_OPT_OUTS, None, 70)),
        ({f"{OLD}/{SECONDS}": "60", f"{NEW}/{MINIMUM}": "7"}, ClassTerms(NO_OPT_OUTS, 7, 60)),
        ({f"{NEW}/{SECONDS}": "9223372036854775807"}, ClassTerms(NO_OPT_OUTS, None, 2**63 - 1)),
    ],
)
def test_what_a_class_says(annotations, expected):
    assert terms(annotations) == (expected, ())


@pytest.mark.parametrize(
    ("annotations", "expected", "problems"),
    [
        (
            {YUNIKORN: "no", GODEL: "yes"},
            ClassTerms((None, False)),
            (
                f"metadata.annotations[{YUNIKORN}]: 'no' is ignored; give true or false",
                f"metadata.annotations[{GODEL}]: 'yes' counts as false; give true or false",
            ),
        ),
        (
            {f"{NEW}/{MINIMUM}": "high", f"{NEW}/{SECONDS}": "60"},
            ClassTerms(NO_OPT_OUTS, None, 60),
            (
                f"metadata.annotations[{NEW}/{MINIMUM}]: 'high' is ignored, so that any higher priority preempts its "
                "pods; give a whole number",
            ),
        ),
        (
            {f"{OLD}/{MINIMUM}": "100", f"{OLD}/{SECONDS}": "1h"},
            ClassTerms(NO_OPT_OUTS, 100, 0),
            (
                f"metadata.annotations[{OLD}/{SECONDS}]: '1h' counts as 0, so that its pods are not exempt from "
                "preemption; give a whole number",
            ),
        ),
        (
            {f"{NEW}/{MINIMUM}": "100"},
            ClassTerms(NO_OPT_OUTS, 100, 0),
            (
                f"metadata.annotations[{NEW}/{MINIMUM}]: has no effect without a number of seconds in {NEW}/{SECONDS}: "
                "give -1 for pods that are to be exempt for ever",
            ),
        ),
    ],
)
def test_what_is_invalid_is_named_with_what_follows(annotations, expected, problems):
    assert terms(annotations) == (expected, problems)


@pytest.mark.parametrize(
    "text", ["", " 1", "1 ", "1_000", "0x10", "1.0", "+-1", "2147483648", "-2147483649", "9" * 5000]
)
def test_numbers_are_those_of_go(text):
    found, problems = terms({f"{NEW}/{MINIMUM}": text, f"{NEW}/{SECONDS}": "-1"})
    assert found.least is None
    assert len(problems) == 1


@pytest.mark.parametrize(
    ("own", "of_class", "expected"),
    [
        ((None, None), (None, None), False),
        ((None, None), (False, None), True),
        ((True, None), (False, None), False),
        ((None, True), (False, None), True),
        ((False, None), (True, True), True),
        ((None, False), (None, True), True),
        ((True, True), (False, False), False),
    ],
)
def test_for_each_convention_a_pods_own_word_counts_then_that_of_its_class(own, of_class, expected):
    assert opted_out(own, of_class) is expected


def test_pods_opt_out_with_the_same_annotations():
    assert preemption_terms(pod(annotations={GODEL: "false"})) == PreemptionTerms(opt_outs=(None, False))
    assert preemption_terms(pod(annotations={YUNIKORN: "true"})) == PreemptionTerms(opt_outs=(True, None))
    assert problem_of(pod(annotations={GODEL: "yes"})) == (
        f"metadata.annotations[{GODEL}]: 'yes' counts as false; give true or false"
    )
