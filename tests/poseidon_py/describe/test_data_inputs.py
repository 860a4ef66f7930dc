"""The data annotation: its valid forms, its errors, and the input sets sent to the engine."""

import json

import msgspec
import pytest

from firmament_py.state import input_sets as engine_side
from poseidon_py.describe.data_inputs import DATA_ANNOTATION, MAX_BLOCKS, MAX_BYTES, Inputs, describe_inputs
from poseidon_py.kube.objects import InvalidField, Pod
from tests.poseidon_py.builders import pod_json
from tests.poseidon_py.fakes import FakeKube
from tests.poseidon_py.rig import Rig

GI = 2**30
PATH = f"metadata.annotations[{DATA_ANNOTATION}]"


def reading(name: str, data: str | None, **fields) -> Pod:
    body = pod_json(name, **fields)
    if data is not None:
        body["metadata"]["annotations"] = {DATA_ANNOTATION: data, "other": "x"}
    return msgspec.json.decode(json.dumps(body), type=Pod)


def blocks(text: str) -> list[tuple[int, list[str], list[str]]]:
    return [(b.bytes, list(b.nodes), list(b.racks)) for b in describe_inputs(text).blocks]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('[{"bytes": "10Gi", "nodes": ["n1", "n2"]}]', [(10 * GI, ["n1", "n2"], [])]),
        ('[{"bytes": 7, "racks": ["r"]}, {"bytes": "1e3"}]', [(7, [], ["r"]), (1000, [], [])]),
        (' [{"bytes": "0", "nodes": null, "racks": []}] ', [(0, [], [])]),
        ('[{"bytes": "1", "nodes": ["b", "a", "b"]}]', [(1, ["a", "b"], [])]),
        ("[]", []),
        ("10Gi@n1,n2", [(10 * GI, ["n1", "n2"], [])]),
        ("10Gi@n1,rack/r1; 5@n2\n1Ki", [(10 * GI, ["n1"], ["r1"]), (5, ["n2"], []), (1024, [], [])]),
        ("", []),
        (" ;; ", []),
        ("1Pi@n", [(MAX_BYTES, ["n"], [])]),
        # bytes that are asked for round up
        ("1500m@n", [(2, ["n"], [])]),
    ],
)
def test_valid_forms_of_the_annotation(text, expected):
    assert blocks(text) == expected


@pytest.mark.parametrize(
    ("text", "field", "remedy"),
    [
        ("[1", PATH, '[{"bytes": "10Gi"'),
        ("[" * 100_000, PATH, '[{"bytes": "10Gi"'),
        ('{"bytes": 1}', PATH, '[{"bytes": "10Gi"'),
        ("[1]", f"{PATH}[0]", '{"bytes": "10Gi"'),
        ('[{"bytes": 1}, {"nodes": ["n"]}]', f"{PATH}[1].bytes", 'such as "10Gi"'),
        ('[{"bytes": "lots"}]', f"{PATH}[0].bytes", 'such as "10Gi"'),
        ('[{"bytes": true}]', f"{PATH}[0].bytes", 'such as "10Gi"'),
        ('[{"bytes": 1.5}]', f"{PATH}[0].bytes", 'such as "10Gi"'),
        ('[{"bytes": -1}]', f"{PATH}[0].bytes", "0 to 1Pi"),
        ('[{"bytes": "2Pi"}]', f"{PATH}[0].bytes", "0 to 1Pi"),
        ('[{"bytes": 1, "nodes": "n"}]', f"{PATH}[0].nodes", '["n1", "n2"]'),
        ('[{"bytes": 1, "racks": [""]}]', f"{PATH}[0].racks", '["n1", "n2"]'),
        ('[{"bytes": 1, "node": ["n"]}]', f"{PATH}[0].node", "bytes, nodes and racks"),
        ("10Gi@n1 10Gx@n2", f"{PATH}[1]", 'such as "10Gi"'),
        ("@n1", f"{PATH}[0]", "10Gi@n1,n2"),
        ("10Gi@", f"{PATH}[0]", "10Gi@n1,n2"),
        ("10Gi@n1, n2", f"{PATH}[0]", "10Gi@n1,n2"),
        ("10Gi@rack/", f"{PATH}[0]", "10Gi@rack/r1"),
        ("n1", f"{PATH}[0]", 'such as "10Gi"'),
        ("1 " * (MAX_BLOCKS + 1), PATH, f"at most {MAX_BLOCKS}"),
    ],
)
def test_an_invalid_annotation_is_named_with_the_remedy(text, field, remedy):
    with pytest.raises(InvalidField) as caught:
        describe_inputs(text)
    assert caught.value.field == field
    assert remedy in caught.value.reason


def test_bridge_and_engine_have_the_same_limits():
    assert (MAX_BLOCKS, MAX_BYTES) == (engine_side.MAX_BLOCKS, engine_side.MAX_BYTES)


def test_equal_inputs_are_one_set():
    inputs = Inputs()
    first = inputs.of(reading("a", "1Ki@n2,n1"))
    assert first == inputs.of(reading("b", '[{"bytes": 1024, "nodes": ["n1", "n2"]}]')) != 0
    assert first != inputs.of(reading("c", "1Ki@n1"))
    assert inputs.of(reading("d", None)) == inputs.of(reading("e", " ")) == 0
    inputs.keep({first})
    assert inputs.get(first) is not None
    assert len(inputs) == 2, "two texts of one set"


def test_slashes_may_be_escaped():
    body = json.dumps({**pod_json("a"), "metadata": {"annotations": {DATA_ANNOTATION: "1@n"}}})
    pod = msgspec.json.decode(body.replace("poseidon.io/data", "poseidon.io\\/data"), type=Pod)
    assert Inputs().of(pod) != 0


# -- what the engine learns -------------------------------------------------------------------------------------------


def show(rig: Rig, name: str, data: str | None, **fields) -> None:
    kube: FakeKube = rig.kube
    kube.put(name, **{key: value for key, value in fields.items() if key == "node"})
    rig.store.observe_pod(reading(name, data, **fields))


def known_to_engine(rig: Rig, name: str) -> list[tuple[int, list[str]]]:
    inputs = rig.task(name)["inputs"]
    return [(b.bytes, list(b.nodes)) for b in inputs.blocks] if inputs is not None else []


async def test_a_set_is_sent_once_and_pods_refer_to_it():
    async with Rig(nodes=()) as rig:
        for name in "abc":
            show(rig, name, "1Ki@n")
        show(rig, "plain", None)
        await rig.settle()
        assert [len(update.inputs) for update in rig.engine.updates].count(1) == 1
        assert sum(len(update.inputs) for update in rig.engine.updates) == 1
        assert known_to_engine(rig, "a") == known_to_engine(rig, "c") == [(1024, ["n"])]
        assert known_to_engine(rig, "plain") == []


async def test_a_changed_annotation_is_sent_while_the_pod_waits():
    async with Rig(nodes=()) as rig:
        show(rig, "a", "1Ki@n")
        await rig.settle()
        show(rig, "a", "2Ki@m")
        await rig.settle()
        assert known_to_engine(rig, "a") == [(2048, ["m"])]
        show(rig, "a", None)
        await rig.settle()
        assert known_to_engine(rig, "a") == []


async def test_the_inputs_of_a_bound_pod_are_ignored():
    async with Rig() as rig:
        show(rig, "a", "1Ki@n")
        show(rig, "theirs", "invalid", node="n", scheduler="other")
        await rig.settle()
        assert rig.bound == ["a"]
        assert rig.state("a") == "bound"
        assert known_to_engine(rig, "a") == known_to_engine(rig, "theirs") == []
        assert rig.problems.ignored == []


async def test_an_invalid_annotation_is_ignored_with_an_event_and_the_pod_is_placed():
    async with Rig(nodes=()) as rig:
        show(rig, "a", "10Gx@n")
        await rig.settle()
        show(rig, "a", "10Gx@n")  # again: said once
        await rig.settle()
        [(name, problem)] = rig.problems.ignored
        assert name == "a"
        assert problem == f"""{PATH}[0]: '10Gx' is not a quantity; give a size such as "10Gi\""""
        assert rig.state("a") == "waiting"
        show(rig, "a", "10Gi@n")
        await rig.settle()
        assert known_to_engine(rig, "a") == [(10 * GI, ["n"])]
        assert rig.problems.ignored[1:] == [("a", "")]
        rig.node("n")
        await rig.settle()
        assert rig.bound == ["a"]


async def test_a_set_that_the_engine_lost_is_sent_again():
    async with Rig(nodes=()) as rig:
        show(rig, "a", "1Ki@n")
        await rig.settle()
        rig.engine.forget_inputs = set(rig.engine.inputs)
        show(rig, "b", "1Ki@n")
        await rig.settle()
        assert known_to_engine(rig, "b") == [(1024, ["n"])]
        assert sum(len(update.inputs) for update in rig.engine.updates) == 2


async def test_a_restarted_engine_learns_sets_again():
    async with Rig(nodes=()) as rig:
        show(rig, "a", "1Ki@n")
        await rig.settle()
        rig.engine.restart()
        rig.node("m", cpu="0")
        await rig.settle()
        assert rig.agrees()
        assert known_to_engine(rig, "a") == [(1024, ["n"])]


async def test_unused_sets_are_dropped():
    async with Rig(nodes=()) as rig:
        rig.store._prune_at = 0
        show(rig, "a", "1Ki@n")
        await rig.settle()
        assert len(rig.store.inputs) == 1
        rig.gone("a")
        rig.store._prune_at = 0
        show(rig, "b", None)
        await rig.settle()
        assert len(rig.store.inputs) == 0
