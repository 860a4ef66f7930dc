"""What the engine is told of pods whose PriorityClass says who may preempt them, as classes change."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from poseidon_py.describe.annotations.class_terms import GODEL, YUNIKORN, ClassTerms
from poseidon_py.describe.annotations.preemption_terms import COOLDOWN
from poseidon_py.feed.rows import Rows
from poseidon_py.feed.update_rows import describe_pod, target
from poseidon_py.kube.objects import InvalidField, micros
from poseidon_py.state.gangs.by_pod_group import PRIORITY_CLASSES
from poseidon_py.state.gangs.decode import Item, owner_or_group_of
from poseidon_py.state.preemption.preemption_rules import FOREVER_US, PreemptionRules
from poseidon_py.state.preemption.priority_classes import DELETED_SECONDS
from poseidon_py.state.store import Store
from tests.poseidon_py.builders import pod

SCHEDULED = "2026-01-01T00:10:00Z"
SCHEDULED_US = micros(SCHEDULED)
NONE = (None, None)
PRIORITY = 100


class Bench:
    """A store with a bound pod of the class `batch` and one without a class."""

    def __init__(self, *, annotations: Any = None, scheduled: str = SCHEDULED, **settings: Any) -> None:
        self.store = Store(["poseidon"], preemption_rules=PreemptionRules(**settings))
        self.later: list[tuple[float, Callable[[], None]]] = []
        self.classes.call_later = lambda seconds, call: self.later.append((seconds, call))
        found = [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T01:00:00Z"}]
        if scheduled:
            found.append({"type": "PodScheduled", "status": "True", "lastTransitionTime": scheduled})
        spec = {"priorityClassName": "batch", "priority": PRIORITY}
        self.put("p", spec=spec, annotations=annotations, status={"conditions": found})
        self.put("plain", spec={"priority": PRIORITY})

    @property
    def classes(self):
        return self.store.priority_classes

    def put(self, name, **fields):
        self.store.observe_pod(pod(name, node="n", **fields))
        self.work()

    def work(self):
        for known in self.store.pods.values():
            if known.dirty:
                describe_pod(self.store, known)
                known.sent, known.dirty = target(self.store, known), False

    def touched(self):
        return [known.name for known in self.store.pods.values() if known.dirty]

    def sent(self, name="p"):
        """Whether the pod is never preempted; or else by which priorities, until when."""
        self.work()
        state = self.store.pods[f"uid-{name}"].sent
        assert state is not None
        return state.unevictable, state.least_preemptor, state.exempt_until_us


def test_a_class_that_opts_out_protects_its_running_pods_until_it_opts_in():
    bench = Bench()
    assert bench.sent() == (False, 0, 0)
    for opt_outs, protected in [((False, None), True), ((True, None), False), ((None, False), True), (NONE, False)]:
        bench.classes.put("batch", ClassTerms(opt_outs))
        assert bench.touched() == ["p"]
        assert bench.sent() == (protected, 0, 0)
        assert bench.sent("plain") == (False, 0, 0)


@pytest.mark.parametrize(
    ("annotations", "protected"),
    [
        (None, True),
        ({YUNIKORN: "true"}, False),
        ({GODEL: "true"}, True),
        ({"poseidon.io/preempt": "true"}, False),
        ({YUNIKORN: "true", "poseidon.io/preempt": "false"}, True),
    ],
)
def test_what_a_pod_says_counts_before_its_class(annotations, protected):
    bench = Bench(annotations=annotations)
    bench.classes.put("batch", ClassTerms((False, None)))
    assert bench.sent()[0] is protected


@pytest.mark.parametrize("key", [YUNIKORN, GODEL])
def test_a_pod_opts_out_by_itself(key):
    assert Bench(annotations={key: "false"}).sent()[0] is True


@pytest.mark.parametrize(
    ("terms", "scheduled", "expected"),
    [
        (ClassTerms(NONE, 1_000, 60), SCHEDULED, (1_000, SCHEDULED_US + 60_000_000)),
        (ClassTerms(NONE, 1_000, -1), SCHEDULED, (1_000, FOREVER_US)),
        (ClassTerms(NONE, 1_000, 0), SCHEDULED, (0, 0)),
        (ClassTerms(NONE, None, 60), SCHEDULED, (PRIORITY + 1, SCHEDULED_US + 60_000_000)),
        (ClassTerms(NONE, 1_000, 2**63 - 1), SCHEDULED, (1_000, FOREVER_US)),
        (ClassTerms(NONE, 1_000, 60), "", (1_000, FOREVER_US)),
        (ClassTerms(NONE, 1_000, 60), "yesterday", (1_000, FOREVER_US)),
    ],
)
def test_a_class_exempts_its_pods_from_their_binding_on(terms, scheduled, expected):
    bench = Bench(scheduled=scheduled)
    bench.classes.put("batch", terms)
    assert bench.sent() == (False, *expected)


def test_a_pod_that_says_that_it_may_be_preempted_is_not_exempt():
    bench = Bench(annotations={"poseidon.io/preempt": "true"})
    bench.classes.put("batch", ClassTerms(NONE, 1_000, -1))
    assert bench.sent() == (False, 0, 0)


@pytest.mark.parametrize(
    ("annotations", "terms", "scheduled", "expected"),
    [
        ({COOLDOWN: "2m"}, ClassTerms(), SCHEDULED, (2**31 - 1, SCHEDULED_US + 120_000_000)),
        ({COOLDOWN: "2m"}, ClassTerms(), "", (2**31 - 1, FOREVER_US)),
        ({COOLDOWN: "0"}, ClassTerms(), SCHEDULED, (0, 0)),
        ({COOLDOWN: "2m"}, ClassTerms(NONE, 1_000, 60), SCHEDULED, (2**31 - 1, SCHEDULED_US + 120_000_000)),
        ({COOLDOWN: "2m"}, ClassTerms(NONE, 1_000, 120), SCHEDULED, (2**31 - 1, SCHEDULED_US + 120_000_000)),
        ({COOLDOWN: "2m"}, ClassTerms(NONE, 1_000, 240), SCHEDULED, (1_000, SCHEDULED_US + 240_000_000)),
        ({COOLDOWN: "2m", "poseidon.io/preempt": "true"}, ClassTerms(), SCHEDULED, (0, 0)),
    ],
)
def test_a_pod_is_exempt_by_its_own_word_unless_its_class_exempts_it_for_longer(
    annotations, terms, scheduled, expected
):
    bench = Bench(annotations=annotations, scheduled=scheduled)
    bench.classes.put("batch", terms)
    assert bench.sent()[1:] == expected


def test_the_time_of_the_binding_is_told_later():
    bench = Bench(scheduled="")
    bench.classes.put("batch", ClassTerms(NONE, 1_000, 60))
    bench.work()
    condition = {"type": "PodScheduled", "status": "True", "lastTransitionTime": SCHEDULED}
    spec = {"priorityClassName": "batch", "priority": PRIORITY}
    bench.put("p", spec=spec, status={"conditions": [condition]})
    assert bench.sent() == (False, 1_000, SCHEDULED_US + 60_000_000)


def test_the_row_has_the_exemption():
    bench = Bench()
    bench.classes.put("batch", ClassTerms(NONE, 1_000, 60))
    bench.work()
    rows = Rows()
    for known in bench.store.pods.values():
        assert known.sent is not None
        rows.add(known, known.sent)
    tasks = rows.finish(bench.store, set(), set()).tasks
    assert list(tasks.least_preemptor) == [1_000, 0]
    assert list(tasks.exempt_until_us) == [SCHEDULED_US + 60_000_000, 0]


def test_while_classes_are_not_read_no_pod_that_names_one_is_preempted():
    bench = Bench()
    bench.classes.set_read(False)
    assert bench.touched() == ["p"]
    assert (bench.sent(), bench.sent("plain")) == ((True, 0, 0), (False, 0, 0))
    bench.classes.put("other", ClassTerms((False, None)))
    bench.classes.set_read(True)
    assert bench.sent() == (False, 0, 0)
    bench.classes.set_read(True)
    assert bench.touched() == []


def test_a_pod_that_says_so_is_preempted_though_its_class_is_not_read():
    bench = Bench(annotations={"poseidon.io/preempt": "true"})
    bench.classes.set_read(False)
    assert bench.sent() == (False, 0, 0)


def test_a_class_that_is_created_anew_protects_its_pods_in_between():
    bench = Bench()
    bench.classes.put("batch", ClassTerms((False, None)))
    bench.work()
    bench.classes.drop("batch")
    assert bench.touched() == []
    bench.classes.put("batch", ClassTerms((False, None)))
    [(seconds, forget)] = bench.later
    assert seconds == DELETED_SECONDS
    forget()
    assert bench.touched() == []
    assert bench.sent()[0] is True


def test_a_class_that_is_deleted_protects_nobody():
    bench = Bench()
    bench.classes.put("batch", ClassTerms((False, None)))
    bench.work()
    bench.classes.drop("batch")
    bench.classes.drop("unknown")
    [(_, forget)] = bench.later
    forget()
    assert bench.touched() == ["p"]
    assert bench.sent() == (False, 0, 0)


def test_protected_classes_of_the_settings_need_no_annotation():
    bench = Bench(protected_classes=frozenset({"batch"}))
    assert (bench.sent()[0], bench.sent("plain")[0]) == (True, False)


@pytest.mark.parametrize("seconds", [3600, -1])
def test_a_cooldown_protects_from_all_before_the_class_protects_from_some(seconds):
    bench = Bench(annotations={COOLDOWN: "10m"})
    bench.store.now_us = lambda: SCHEDULED_US + 60_000_000
    bench.classes.put("batch", ClassTerms(NONE, 1_000, seconds))
    until_us = FOREVER_US if seconds < 0 else SCHEDULED_US + 3600 * 1_000_000
    assert bench.sent() == (False, 2**31 - 1, until_us)
    bench.classes.put("batch", ClassTerms(NONE, 1_001, seconds))
    assert bench.sent() == (False, 2**31 - 1, until_us)
    [(delay, touch)] = bench.later
    assert delay == 540
    bench.store.now_us = lambda: SCHEDULED_US + 600 * 1_000_000
    touch()
    assert bench.touched() == ["p"]
    assert bench.sent() == (False, 1_001, until_us)
    assert len(bench.later) == 1


def test_a_cooldown_that_outlasts_the_class_is_not_weakened():
    bench = Bench(annotations={COOLDOWN: "10m"})
    bench.store.now_us = lambda: SCHEDULED_US
    bench.classes.put("batch", ClassTerms(NONE, 1_000, 60))
    assert bench.sent() == (False, 2**31 - 1, SCHEDULED_US + 600 * 1_000_000)
    assert bench.later == []


def test_a_class_deleted_twice_counts_for_ten_seconds_after_the_second_time():
    bench = Bench()
    for _ in range(2):
        bench.classes.put("batch", ClassTerms((False, None)))
        bench.classes.drop("batch")
    (_, first), (_, second) = bench.later
    first()
    assert bench.sent()[0] is True
    second()
    assert bench.sent()[0] is False


@pytest.mark.parametrize("value", [2**31, -(2**31) - 1, 10**30])
def test_a_value_that_no_priority_can_have_is_invalid(value):
    item = msgspec.json.decode(f'{{"metadata": {{"name": "c", "uid": "u"}}, "value": {value}}}', type=Item)
    with pytest.raises(InvalidField, match="value"):
        owner_or_group_of(PRIORITY_CLASSES, item)
