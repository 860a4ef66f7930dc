"""The forms of values accept whatever is read, and the table has every key that is."""

import json
import re
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.conventions.tables.own import OWN, PREFIX
from poseidon_py.describe import lifetime
from poseidon_py.describe.annotations import checkpoint, movable, preemption_terms, traits
from poseidon_py.describe.bandwidth import capacity
from poseidon_py.describe.data_inputs import describe_inputs
from poseidon_py.jobs.rules.annotations import read_extensions
from poseidon_py.kube.objects import InvalidField, Pod
from poseidon_py.state.devices.gang_match import match_attribute
from poseidon_py.state.gangs.by_owner import JOBS, Own
from poseidon_py.state.gangs.model import Invalid
from tests.effort import examples
from tests.paths import ROOT
from tests.poseidon_py.builders import pod_json
from tests.poseidon_py.state.gangs.builders import JOB, Objects, hints, owner_or_group

Reads = Callable[[str], bool]
"""Whether a value is read, and not reported as invalid."""

FORMS = {
    key.removeprefix(PREFIX): verdict.form
    for table in (OWN.pods, OWN.objects)
    for rows in (table.annotations, table.labels)
    for key, verdict in rows.items()
    if verdict.form is not None
}


def _annotated(key: str, text: str) -> Pod:
    body = json.dumps(pod_json("a", annotations={f"{PREFIX}{key}": text}))
    return msgspec.json.decode(body, type=Pod)


def _on_pod(key: str, problem_of: Callable[[Pod], str]) -> Reads:
    return lambda text: not problem_of(_annotated(key, text))


def _in_gang(key: str, **others: str) -> Reads:
    objects = Objects((JOBS, owner_or_group(JOBS, "j", uid="uid-j", spec={"parallelism": 3})))

    def reads(text: str) -> bool:
        annotations = {f"{PREFIX}{name}": value for name, value in {**others, key: text}.items()}
        return _succeeds(lambda: Own().read(hints(annotations=annotations, owner=JOB), objects))

    return reads


def _of_job(key: str) -> Reads:
    return lambda text: _succeeds(lambda: read_extensions({f"{PREFIX}{key}": text}, ["worker"]))


def _succeeds(read: Callable[[], object]) -> bool:
    try:
        read()
    except (InvalidField, Invalid):
        return False
    return True


_BANDWIDTH: Reads = lambda text: _succeeds(lambda: capacity(text, ""))  # noqa: E731
READERS: dict[str, tuple[Reads, tuple[str, ...], tuple[str, ...]]] = {
    "interference-class": (
        _on_pod("interference-class", traits.problem_of), ("sheep", "RABBIT", "devil", "turtle"), ("wolf", "", "sheep ")
    ),
    "program": (_on_pod("program", traits.problem_of), ("p", " a b ", "x" * 253), ("", "  ", "x" * 254)),
    "speed": (_on_pod("speed", traits.problem_of), ("a=1", "c5.xlarge=1.6, m5=1"), ("", "a", "a=", "=1", "a=fast")),
    "gang": (_in_gang("gang"), ("all", "True", "yes", "none", "no", "3", " 10 "), ("", "0", "-1", "2.5", "many")),
    "gang-min": (_in_gang("gang-min", gang="all"), ("1", "0010", " 7"), ("", "0", "-1", "2.5", "all", "1e3")),
    "gang-max": (_in_gang("gang-max", gang="2"), ("2", "50"), ("", "0", "x")),
    "gang-role": (_in_gang("gang-role", gang="2"), ("a", "worker=2", "ps=0", "", "=1"), ("a=", "a=b", "a=1=2")),
    "gang-topology": (_in_gang("gang-topology", gang="2"), ("zone", "topology.kubernetes.io/zone", ""), ()),
    "gang-topology-mode": (_in_gang("gang-topology-mode", gang="2"), ("required", "preferred"), ("", "Required")),
    "gang-match-attribute": (
        lambda text: _succeeds(lambda: match_attribute(_annotated("gang-match-attribute", text), has_claims=True)),
        ("resource.kubernetes.io/pcieRoot", "gpu.example.com/numa_0", ""),
        ("rail", "/rail", "a/b/c", "Gpu.example.com/rail", "gpu.example.com/1", "gpu.example.com/a-b"),
    ),
    "data": (
        lambda text: _succeeds(lambda: describe_inputs(text)),
        ("10Gi@n1,n2; 1048576@rack/r1", "1k", "", ' [{"bytes": "1Gi", "nodes": ["n1"]}]', "[]"),
        ("@n1", "10Gi@", "big@n1", "10Gi@n1,"),
    ),
    "expected-duration": (
        _on_pod("expected-duration", lifetime.problem_of), ("90s", "1h30m", "5400", " .5h ", "1.5h"),
        ("", "0", "0s", "10 min", "1d", "-1s", "soon"),
    ),
    "last-checkpoint": (
        _on_pod("last-checkpoint", checkpoint.problem_of),
        ("2006-01-02T15:04:05Z", "2006-01-02T15:04:05.123+02:00", "20060102", "2006-W01-2", ""),
        ("yesterday", "1735689600", "15:04"),
    ),
    "movable": (_on_pod("movable", movable.problem_of), ("true", "false"), ("", "True", "yes", "1")),
    "preempt": (_on_pod("preempt", preemption_terms.problem_of), ("true", "false"), ("", "True", "never")),
    "preemption-notice": (
        _on_pod("preemption-notice", preemption_terms.problem_of), ("90s", "0", "10m"), ("", "ten", "10 m", "5d")
    ),
    "ingress-bandwidth": (_BANDWIDTH, ("1G", "0", "1e9", ".5k", "+1M"), ("", "1Gb", "fast", "1 G", "-1")),
    "egress-bandwidth": (_BANDWIDTH, ("100M",), ("100Mbit",)),
    "policies": (_of_job("policies"), ('[{"event": "PodFailed", "action": "RestartJob"}]', ""), ("x", "{}")),
    "completion-policy": (_of_job("completion-policy"), ('{"worker": {"minSucceeded": 1}}', ""), ("x", "[]")),
    "retry-policy": (_of_job("retry-policy"), (' {"delay": 10}', ""), ("3", "[]")),
}  # fmt: skip
"""Key -> whether a value is read; values that are; values that are not, and whose form says so."""


def _accepted(key: str, text: str) -> bool:
    return all(re.search(pattern, text) for pattern in FORMS[key].patterns)


def test_each_form_has_a_reader():
    assert READERS.keys() == FORMS.keys()


@pytest.mark.parametrize("key", READERS)
def test_what_is_read_has_the_form_and_what_is_plainly_wrong_has_not(key: str):
    reads, right, wrong = READERS[key]
    assert [text for text in right if not (reads(text) and _accepted(key, text))] == []
    assert [text for text in wrong if reads(text) or _accepted(key, text)] == []


_PIECES = [*'0159.-+=,;@ /:{}[]"aATZ\nesmhkGi', "µs", "true", "all", "h"]


@examples(100)
@given(st.data())
def test_whatever_is_read_has_the_form(data: st.DataObject):
    """Values like the ones above, with some pieces replaced."""
    key = data.draw(st.sampled_from(sorted(READERS)))
    reads, right, wrong = READERS[key]
    text = data.draw(st.sampled_from(right + wrong))
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(text)))
        text = text[:at] + data.draw(st.sampled_from(["", *_PIECES])) + text[at + data.draw(st.integers(0, 2)) :]
    if key == "gang-topology":
        return  # any text is read as the key of a label, and one that no label can have matches no node
    if reads(text) and not (key.endswith("bandwidth") and text.startswith("-")):  # -0 is read as 0
        assert _accepted(key, text), text


def test_every_key_in_the_code_is_in_the_table():
    """Else the admission policies would refuse a key that is read."""
    known = {
        key.rstrip("*.")
        for table in (OWN.pods, OWN.objects)
        for rows in (table.annotations, table.labels)
        for key in rows
    }
    found = {
        match[0]
        for package in ("poseidon_py", "benchmarks")
        for path in (ROOT / package).rglob("*.py")
        if "conventions" not in path.parts
        for match in re.finditer(r"(?<![\w.-])poseidon\.io/[a-z][a-z.-]*[a-z]", path.read_text())
    }
    no_keys = {"poseidon.io/v", "poseidon.io/load"}  # the API version, and the beginning of several
    assert found - no_keys - known == set()
