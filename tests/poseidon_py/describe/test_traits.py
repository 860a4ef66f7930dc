"""Traits of pods, as the bridge sends them."""

import json
from typing import Any

import msgspec
import pytest

from poseidon_py.describe.annotations.traits import problem_of
from poseidon_py.describe.pod_class import describe_class, key_of
from poseidon_py.describe.task_classes import Classes
from poseidon_py.kube.objects import Pod
from tests.poseidon_py.builders import pod, pod_json

KIND, PROGRAM, SPEED = "poseidon.io/interference-class", "poseidon.io/program", "poseidon.io/speed"


def saying(annotations: dict[str, str] | None = None, labels: dict[str, str] | None = None, **fields: Any) -> Pod:
    body = pod_json(**fields)
    body["metadata"] |= {"annotations": annotations or {}, "labels": labels or {}}
    return msgspec.json.decode(json.dumps(body), type=Pod)


@pytest.mark.parametrize(
    ("annotations", "labels", "traits"),
    [
        pytest.param({}, {}, {}, id="nothing"),
        pytest.param({KIND: "devil"}, {}, {"interference-class": "devil"}, id="annotation"),
        pytest.param({}, {KIND: "Turtle"}, {"interference-class": "turtle"}, id="label-in-any-case"),
        pytest.param({}, {"taskType": "RABBIT"}, {"interference-class": "rabbit"}, id="as-poseidon-knows-it"),
        pytest.param({}, {"taskType": "batch"}, {}, id="unknown-task-type"),
        pytest.param({KIND: "devil"}, {KIND: "sheep"}, {"interference-class": "devil"}, id="annotation-first"),
        pytest.param({KIND: "sheep"}, {"taskType": "devil"}, {"interference-class": "sheep"}, id="own-name-first"),
        pytest.param({PROGRAM: " web "}, {}, {"program": "web"}, id="program"),
        pytest.param({SPEED: "m5=1.0, c5 = 1.60"}, {}, {"speed": "c5=1.6,m5=1"}, id="speed-in-one-form"),
        pytest.param({"poseidon.io/gang": "g", "a": "b"}, {"c": "d"}, {}, id="nothing-else-is-sent"),
    ],
)
def test_traits(annotations, labels, traits):
    assert dict(describe_class(saying(annotations, labels)).traits) == traits


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        pytest.param({KIND: "wolf"}, "'wolf' is not valid; give one of sheep, rabbit, devil, turtle", id="no-class"),
        pytest.param({PROGRAM: " "}, "give a name of 1 to 253", id="no-name"),
        pytest.param({SPEED: "fast"}, "'fast' is not valid; give PLATFORM=SPEED", id="no-speed"),
        pytest.param({SPEED: "a=0"}, "a speed from 0.01 to 100", id="speed-0"),
        pytest.param({SPEED: "a=1e9"}, "a speed from 0.01 to 100", id="speed-too-high"),
        pytest.param({SPEED: "=1"}, "'=1' is not valid; give PLATFORM=SPEED", id="no-platform"),
        pytest.param({SPEED: "a=1,a=2"}, "has 'a' twice", id="twice"),
        pytest.param({SPEED: ",".join(f"p{i}=1" for i in range(65))}, "has 65 platforms", id="too-many"),
    ],
)
def test_an_invalid_trait_is_ignored_and_reported(message, problem):
    sound = {} if PROGRAM in message else {PROGRAM: "web"}
    for pod_ in (saying(message | sound), saying(sound, message), saying(message | sound, node="n")):
        assert dict(describe_class(pod_).traits) == ({"program": "web"} if sound else {})
        assert problem in problem_of(pod_)
    assert problem_of(saying(message)).startswith(f"metadata.annotations[{next(iter(message))}]: ")
    assert problem_of(saying(message)).endswith("; it is ignored")


def test_a_valid_trait_is_not_reported():
    assert problem_of(saying({KIND: "devil"}, {"taskType": "batch"})) == ""
    assert problem_of(pod()) == ""


def test_only_traits_change_the_key():
    one, other = saying({KIND: "devil", "x": "1"}, {"y": "1"}), saying({KIND: "devil", "x": "2"}, {"y": "2"})
    assert key_of(one) == key_of(other) != key_of(saying({KIND: "sheep"}))
    classes = Classes()
    assert classes.of(one) == classes.of(other) != classes.of(pod())
    assert classes.of(saying({"x": "1"})) == classes.of(pod())
