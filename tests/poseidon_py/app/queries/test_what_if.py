"""`poseidon what-if`: what is asked and answered, and its exit codes."""

import asyncio
import json

import pytest
from click.testing import CliRunner

from poseidon_py.app.queries.would_fit import Fitting, question_of
from poseidon_py.app.serving.state_endpoints import Health
from poseidon_py.cli.main import cli
from poseidon_py.describe.bandwidth import Bandwidth
from poseidon_py.kube.objects import InvalidField
from protos.gen import flow_pb2
from tests.poseidon_py.app.queries.test_fit_endpoint import FIT
from tests.poseidon_py.app.serving.answers import Answers

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {"priority": 3, "containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
}
REASON = flow_pb2.Reason(kind=flow_pb2.Reason.INSUFFICIENT_RESOURCE, detail="cpu", nodes=4)


UNASKED: dict[str, object] = {"verdict": None, "never": [], "at_best_ever": None, "displaced": 0, "stranded": []}


class Asked(Answers):
    """Answers with what `answer` has."""

    def __init__(self) -> None:
        super().__init__()
        self.answer = dict(FIT)
        self.body: dict = {}

    async def fits(self, body):
        self.body = body
        return self.answer


@pytest.fixture
async def asked():
    answers = Asked()
    health = Health(answers)
    await health.start()

    async def run(*arguments: str, **answer: object):
        answers.answer = (
            FIT | {"verdict": None, "never": [], "at_best_ever": None, "displaced": 0, "stranded": []} | answer
        )
        flags = ["what-if", "--address", f"127.0.0.1:{health.port}", *arguments]
        result = await asyncio.to_thread(CliRunner().invoke, cli, flags, "kind: Pod", env={"COLUMNS": "200"})
        return result, answers.body

    yield run
    await health.stop()


NEVER = [{"workload": "job/j", "count": 1, "message": "0/4 nodes are available: 4 Insufficient cpu."}]


@pytest.mark.parametrize(
    ("answer", "code", "lines"),
    [
        ({"verdict": "now", "fits": True}, 0, []),
        ({"verdict": "later"}, 1, ["later: they fit once others have left"]),
        (
            {"verdict": "never", "never": NEVER, "at_best_ever": 2},
            3,
            [
                "never: they do not fit even if all other pods have left, which is proved, at most 2 fit",
                "job/j: even then: 0/4 nodes are available: 4 Insufficient cpu.",
            ],
        ),
        (
            {"verdict": "not found", "never": NEVER},
            1,
            ["unknown: no way was found even if all other pods have left, which proves nothing"],
        ),
        (
            {"verdict": "now", "displaced": 3, "stranded": ["ns/a"]},
            0,
            ["drained: 3 pods leave, 2 find other nodes; not: ns/a"],
        ),
    ],
)
async def test_verdicts(asked, answer, code, lines):
    result, _ = await asked("-f", "-", **answer)
    assert result.exit_code == code
    assert set(lines) <= set(result.output.splitlines())
    assert result.output.splitlines()[0].startswith(("fits: ", "does not fit: "))


@pytest.mark.parametrize(("stranded", "code"), [([], 0), (["ns/a"], 1)])
async def test_a_drain_alone(asked, stranded, code):
    result, body = await asked("--drain", "a", "--drain", "b", pods=0, displaced=2, stranded=stranded)
    assert (result.exit_code, body["objects"], body["drain"]) == (code, [], ["a", "b"])
    assert len(result.output.splitlines()) == 1
    result, _ = await asked("--drain", "a", pods=0)
    assert result.output == "drained: no pods but those of DaemonSets would leave\n"


async def test_what_is_asked(asked):
    flags = [
        "--priority",
        "7",
        "--queue",
        "q",
        "--minimum",
        "2",
        "--topology",
        "zone",
        "--with-preemption",
        "-n",
        "x",
        "--drain",
        "n",
    ]
    shapes = ["--add-nodes", "3:n1", "--add-nodes", "2:cpu=8, memory=1Gi"]
    result, body = await asked("-f", "-", "--json", *flags, *shapes, verdict="later")
    assert (result.exit_code, json.loads(result.output)["verdict"]) == (1, "later")
    assert body == {
        "objects": [{"kind": "Pod"}],
        "namespace": "x",
        "minimum": 2,
        "topology": "zone",
        "priority": 7,
        "override_priority": True,
        "preempt": True,
        "queue": "q",
        "add_nodes": [{"count": 3, "like": "n1"}, {"count": 2, "amounts": {"cpu": "8", "memory": "1Gi"}}],
        "drain": ["n"],
        "ever": True,
    }


@pytest.mark.parametrize(
    "flags",
    [
        [],
        ["-f", "-", "--add-nodes", "n1"],
        ["-f", "-", "--add-nodes", "0:n1"],
        ["-f", "-", "--add-nodes", "2:"],
        ["-f", "-", "--add-nodes", f"{'9' * 5000}:n1"],
        ["-f", "-", "--add-nodes", "2:cpu="],
        ["-f", "-", "--add-nodes", "\u0663:n1"],
    ],
)
async def test_wrong_usage(asked, flags):
    result, body = await asked(*flags)
    assert (result.exit_code, body) == (2, {})


def fitting(**fields: object) -> Fitting:
    body = {"objects": [POD], "ever": True} | fields
    return Fitting(question_of(body), None, bandwidth=Bandwidth(), now_us=1, queues={"team-a": 5})  # type: ignore[arg-type]


def test_the_request():
    request = fitting(
        queue="team-a",
        add_nodes=[{"count": 2, "like": "n"}, {"count": 1, "amounts": {"cpu": "500m", "memory": "1Ki"}}],
        drain=["m"],
    ).request
    assert [each.queue_id for each in request.members] == [5]
    assert list(request.added_nodes) == [
        flow_pb2.AddedNodes(count=2, like="n"),
        flow_pb2.AddedNodes(count=1, allocatable={"cpu": 500, "memory": 1024, "pods": 110}),
    ]
    assert (list(request.drained_nodes), request.says_whether_ever) == (["m"], True)


@pytest.mark.parametrize(("override", "priority"), [(False, 3), (True, 9)])
def test_the_priority_is_that_of_all_only_if_it_overrides(override, priority):
    [member] = fitting(priority=9, override_priority=override).request.members
    assert getattr(member, "class").priority == priority


def test_a_drain_needs_no_manifest():
    asked = fitting(objects=[], drain=["m"])
    assert not asked.request.members
    assert asked.answer(flow_pb2.FitReply(fits=True, displaced=2, stranded=["ns/a"]))["stranded"] == ["ns/a"]


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"queue": "teama"}, "queue: is 'teama', which takes no pods; did you mean team-a?"),
        ({"queue": "zzz"}, "queue: is 'zzz', which takes no pods; there are team-a"),
        ({"add_nodes": [{"count": 0, "like": "n"}]}, "add_nodes: has a count of 0; give 1 to 10000"),
        ({"add_nodes": [{"count": 2**40, "like": "n"}]}, "add_nodes: has a count of 1099511627776; give 1 to 10000"),
        ({"priority": 2**31, "override_priority": True}, "Pod default/p: spec: has the priority 2147483648; give one"),
        ({"add_nodes": [{"count": 1}]}, "add_nodes: needs a node that they are like, or amounts of resources"),
        ({"add_nodes": [{"count": 1, "like": "n", "amounts": {"cpu": "1"}}]}, "add_nodes: needs a node that"),
        (
            {"add_nodes": [{"count": 1, "amounts": {"cpu": "lots"}}]},
            "add_nodes: allocatable[cpu] 'lots' is not a quantity",
        ),
        ({"objects": []}, "the manifest: no pods"),
    ],
)
def test_what_cannot_be_asked(fields, problem):
    with pytest.raises(InvalidField) as refused:
        fitting(**fields)
    assert str(refused.value).startswith(problem)


@pytest.mark.parametrize(
    ("reply", "verdict", "even_then"),
    [
        (flow_pb2.FitReply(fits=True, at_best=-1), "now", []),
        (flow_pb2.FitReply(ever=flow_pb2.FitReply.FITS_LATER, at_best_ever=-1), "later", []),
        (
            flow_pb2.FitReply(
                ever=flow_pb2.FitReply.NEVER_FITS,
                at_best_ever=-1,
                never=[flow_pb2.Unscheduled(waiting=1, nodes=4, reasons=[REASON])],
            ),
            "never",
            ["0/4 nodes are available: 4 Insufficient cpu."],
        ),
    ],
)
def test_the_answer(reply, verdict, even_then):
    found = fitting().answer(reply)
    assert (found["verdict"], [each["message"] for each in found["never"]]) == (verdict, even_then)
    assert fitting(ever=False).answer(reply)["verdict"] is None
