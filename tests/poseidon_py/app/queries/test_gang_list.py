"""The gangs of a scheduler as JSON, and as `poseidon gangs` prints them."""

import io
import json
import re

import pytest
from rich.console import Console

from poseidon_py.app.queries.gang_list import STATES, UnknownGang, counts_by_state, gangs_json
from poseidon_py.cli.gangs import age, print_gangs
from poseidon_py.state.gangs.by_owner import JOBS
from poseidon_py.state.gangs.by_pod_group import VOLCANO
from protos.gen import flow_pb2
from tests.poseidon_py.state.gangs.builders import CREATED_US, JOB, SECOND_US, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

GROUP = {"scheduling.k8s.io/group-name": "v"}
NOW_US = CREATED_US + 90 * SECOND_US


@pytest.fixture
def rig():
    rig = Rig((JOBS, owner_or_group(JOBS, "j", spec={"parallelism": 2})))
    rig.registry.form_gangs_from(["jobs"])
    return rig


def listed(rig, name="", namespace="", **standing):
    """The gangs; `standing`: what the engine says of each."""
    standings = [flow_pb2.GangStanding(id=id, **({"fits": -1} | standing)) for id in rig.registry.groups]
    return gangs_json(rig.registry, standings, now_us=NOW_US, name=name, namespace=namespace)["gangs"]


def state_of(rig, **standing):
    (gang,) = listed(rig, **standing)
    return gang["state"], gang["why"]


def pod(rig, name, *, node="", phase="Pending", **fields):
    rig.pod(name, owner=JOB, node=node, phase=phase, **fields)


def test_a_gang_from_its_first_to_its_last_pod(rig):
    assert listed(rig) == []
    pod(rig, "a")
    assert state_of(rig) == ("Waiting for members", "1 more member is needed before it can be placed")
    pod(rig, "b")
    assert state_of(rig) == ("Pending", "the next round will try to place it")
    assert state_of(rig, fits=1) == ("Pending", "there was capacity for at most 1 of the 2 members that it lacks")
    starts = {"reserves": True, "starts_us": CREATED_US}
    why = "capacity is reserved for it, expected to suffice at 2026-01-01T00:00:00Z"
    assert state_of(rig, fits=1, **starts) == ("Reserved", why)
    pod(rig, "a", node="n")
    assert state_of(rig) == (
        "Interrupted",
        "1 of at least 2 members are placed; the next round will try to place it",
    )
    pod(rig, "b", node="n")
    assert state_of(rig, fits=1) == ("Placed", "")
    pod(rig, "a", node="n", phase="Running")
    assert state_of(rig) == ("Placed", "")
    pod(rig, "b", node="n", phase="Running")
    assert state_of(rig) == ("Running", "")
    rig.gone("b")
    why = "1 of at least 2 members are placed; 1 more member is needed before it can be placed"
    assert state_of(rig) == ("Interrupted", why)
    rig.gone("a")
    assert listed(rig) == []


def test_members_that_have_succeeded_count(rig):
    labels = {"pod-group.scheduling.x-k8s.io/name": "g", "pod-group.scheduling.x-k8s.io/min-available": "2"}

    def states(*pods):
        fresh = Rig()
        for number, fields in enumerate(pods):
            fresh.pod(f"p{number}", labels=labels, **fields)
        (gang,) = listed(fresh)
        return gang["state"], gang["present"], gang["why"]

    runs, done = {"node": "n", "phase": "Running"}, {"node": "n", "phase": "Succeeded"}
    assert states(runs, done) == ("Running", 2, "")  # the job ends normally
    assert states({"node": "n"}, done) == ("Placed", 2, "")
    assert states({}, done) == ("Pending", 2, "the next round will try to place it")
    assert states({}, done, done) == ("Pending", 3, "the next round will try to place it")
    why = "1 of at least 2 members are placed; 1 more member is needed before it can be placed"
    assert states(runs, {"node": "n", "phase": "Failed"}) == ("Interrupted", 1, why)


def test_the_fields_of_a_gang(rig):
    pod(rig, "a", node="n", phase="Running", priority=3)
    pod(rig, "b", priority=7)
    (gang,) = listed(rig, name="j")
    assert gang["members"] == [
        {"pod": "ns/a", "role": "", "node": "n", "state": "running", "nominated": ""},
        {"pod": "ns/b", "role": "", "node": "", "state": "waiting", "nominated": ""},
    ]
    assert {key: value for key, value in gang.items() if key not in ("members", "why")} == {
        "name": "ns/j",
        "namespace": "ns",
        "source": "Job",
        "state": "Interrupted",
        "minimum": 2,
        "maximum": None,
        "roles": {},
        "present": 2,
        "placed": 1,
        "running": 1,
        "waiting": 1,
        "succeeded": 0,
        "failed": 0,
        "priority": 7,
        "queue": None,
        "created": "2026-01-01T00:00:00Z",
        "age_seconds": 89,  # within a second, a hash of the name orders gangs
        "reserves": False,
        "starts": None,
        "problem": "its members have different priorities (3, 7); the highest of the pending ones applies",
    }


def test_the_queue_is_that_of_the_members(rig):
    for name in "ab":
        pod(rig, name)
    (gang,) = gangs_json(rig.registry, [], now_us=NOW_US, queue_of=lambda known: {"b": "team"}.get(known.name, ""))[
        "gangs"
    ]
    assert gang["queue"] == "team"


def test_roles_that_lack_members_and_the_queue_of_a_pod_group(rig):
    spec = {"minMember": 2, "minTaskMember": {"ps": 1, "worker": 1}, "queue": "research"}
    rig.put(VOLCANO, owner_or_group(VOLCANO, "v", spec=spec))
    for name in ("a", "b"):
        rig.pod(name, annotations=GROUP | {"volcano.sh/task-spec": "worker"})
    (gang,) = listed(rig)
    assert (gang["source"], gang["queue"], gang["roles"]) == ("Volcano", "research", {"ps": 1, "worker": 1})
    assert (gang["state"], gang["why"]) == (
        "Waiting for members",
        "1 more member (of role ps) is needed before it can be placed",
    )


def test_a_gang_whose_group_does_not_exist_says_so(rig):
    rig.pod("a", annotations=GROUP)
    state, why = state_of(rig)
    assert state == "Pending"
    assert why.startswith('pod group "ns/v" not found')


def test_gangs_are_selected_by_name_and_namespace(rig):
    pod(rig, "a")
    rig.pod("b", labels={"scheduling.x-k8s.io/pod-group": "train-1", "fluence.group-size": "2"})
    assert [gang["name"] for gang in listed(rig)] == ["ns/j", "ns/train-1"]
    assert [gang["name"] for gang in listed(rig, name="ns/train-1")] == ["ns/train-1"]
    assert [gang["name"] for gang in listed(rig, name="train-1", namespace="ns")] == ["ns/train-1"]
    assert listed(rig, namespace="n") == []
    for name, remedy in (
        ("train", "did you mean ns/train-1?"),
        ("ns/train-2", "did you mean ns/train-1?"),
        ("xyz", "`poseidon gangs` lists all"),
    ):
        with pytest.raises(UnknownGang) as error:
            listed(rig, name=name)
        assert str(error.value) == f"gang {name} not found; {remedy}"


def test_without_an_answer_of_the_engine_the_rest_is_known(rig):
    pod(rig, "a")
    (gang,) = gangs_json(rig.registry, [], now_us=NOW_US)["gangs"]
    assert (gang["state"], gang["reserves"]) == ("Waiting for members", False)
    assert json.loads(json.dumps(gang)) == gang


def printed(gangs, width=200):
    out = io.StringIO()
    print_gangs(gangs, Console(file=out, width=width))
    return out.getvalue()


def test_output(rig):
    assert printed([]) == "no gangs\n"
    pod(rig, "a", node="n1")
    pod(rig, "b")
    table = printed(listed(rig))
    for text in ("ns/j", "Job", "Interrupted", "1m29s", "1 gang: 1 interrupted"):
        assert text in table
    lines = printed(listed(rig, name="j")).splitlines()
    assert lines[0] == "ns/j"
    assert "declared by Job; minimum 2; 2 present, 1 placed, 0 running, 1 waiting; priority 0; age 1m29s" in lines[1]
    assert any("ns/a" in line and "n1" in line and "bound" in line for line in lines)
    assert "ns/j" in printed(listed(rig), width=40)


@pytest.mark.parametrize("width", [80, 120])
def test_gangs_are_a_table_on_a_terminal(rig, width):
    """One line each, in place of a record of many lines; below it, if need be, why it waits."""
    pod(rig, "a", node="n1")
    pod(rig, "b")
    lines = printed(listed(rig), width=width).splitlines()
    words = [re.findall(r"[\w/]+", line) for line in lines]
    assert ["gang", "source", "state", "minimum", "present", "running", "waiting", "age"] in [
        line[:8] for line in words
    ]
    assert ["ns/j", "Job", "Interrupted", "2", "2", "0", "1", "1m29s"] in [line[:8] for line in words]
    assert max(map(len, lines)) <= width


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59, "59s"), (60, "1m"), (3725, "1h2m"), (86400, "1d"), (90061, "1d1h")]
)
def test_ages(seconds, text):
    assert age(seconds) == text


def test_states_are_counted_in_their_order():
    found = counts_by_state([{"state": state} for state in (*reversed(STATES), "Running")])
    assert list(found) == list(STATES)
    assert found["Running"] == 2
