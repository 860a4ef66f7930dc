"""Specifications of jobs: defaults, and errors that name the field."""

import pytest

from poseidon_py.jobs.rules.policies import Action
from poseidon_py.kube.objects import InvalidField
from tests.poseidon_py.jobs.builders import job, policy, task, template


def test_defaults_are_those_of_volcanos_webhook():
    spec = job(task("a", 2), task("b", 3, minAvailable=1), {"replicas": 1, "template": template()})
    assert [each.name for each in spec.tasks] == ["a", "b", "default2"]
    assert [each.min_available for each in spec.tasks] == [2, 1, 1]
    assert spec.min_available == 4  # 2 + 1 + 1
    assert (spec.queue, spec.max_retry, spec.ttl, spec.min_success) == ("default", 3, None, None)
    assert all(each.max_retry == 3 for each in spec.tasks)


def test_a_partition_policy_gives_the_minimum():
    spec = job(task(replicas=6, partitionPolicy={"totalPartitions": 3, "partitionSize": 2, "minPartitions": 2}))
    assert (spec.tasks[0].partition_size, spec.tasks[0].min_available) == (2, 4)


def test_the_retry_policy_allows_that_many_retries():
    # the retry that reaches maxRetry fails the job, so two retries need a limit of three
    assert job(annotations={"poseidon.io/retry-policy": {"maxRetryCount": 2}}).max_retry == 3


def test_policies_of_the_annotation_come_after_those_of_the_job():
    extra = [policy("AbortJob", "DataReady")]
    spec = job(policies=[policy("RestartJob", "PodFailed")], annotations={"poseidon.io/policies": extra})
    assert [each.action for each in spec.policies] == [Action.RESTART_JOB, Action.ABORT_JOB]


@pytest.mark.parametrize(
    ("tasks", "fields", "path", "remedy"),
    [
        pytest.param([], {"tasks": []}, "spec.tasks", "at least one task", id="no tasks"),
        pytest.param([], {"tasks": "x"}, "spec.tasks", "array", id="another type"),
        pytest.param([task(replicas=-1)], {}, "spec.tasks[0].replicas", "from 0", id="negative replicas"),
        pytest.param([task("a"), task("a")], {}, "spec.tasks[1].name", "its own", id="one name twice"),
        pytest.param([task("A")], {}, "spec.tasks[0].name", "lower-case", id="a name with capitals"),
        pytest.param([task("a" * 60, 11)], {}, "spec.tasks[0].name", "shorter", id="long pod names"),
        pytest.param([task(minAvailable=3)], {}, "spec.tasks[0].minAvailable", "at most", id="minimum of a task"),
        pytest.param([task()], {"minAvailable": 3}, "spec.minAvailable", "at most", id="minimum of the job"),
        pytest.param([{"name": "a"}], {}, "spec.tasks[0].template.spec.containers", "at least", id="no containers"),
        pytest.param([task(dependsOn={"name": ["x"]})], {}, "spec.tasks[0].dependsOn.name", "no other", id="unknown"),
        pytest.param(
            [task("a", dependsOn={"name": ["b"]}), task("b", dependsOn={"name": ["a"]})],
            {},
            "spec.tasks[0].dependsOn",
            "wait for each other",
            id="a circle",
        ),
        pytest.param(
            [task(replicas=5, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})],
            {},
            "spec.tasks[0].partitionPolicy",
            "make them equal",
            id="partitions that do not fit",
        ),
        pytest.param([], {"policies": [{"action": "AbortJob"}]}, "spec.policies[0]", "neither", id="no event"),
        pytest.param(
            [], {"policies": [policy("AbortJob", "PodFailed", exitCode=3)]}, "spec.policies[0]", "both", id="both"
        ),
        pytest.param(
            [], {"policies": [policy("AbortJob", exitCode=0)]}, "spec.policies[0].exitCode", "success", id="exit code 0"
        ),
        pytest.param(
            [], {"policies": [policy("Explode", "*")]}, "spec.policies[0].action", "RestartJob", id="unknown action"
        ),
        pytest.param(
            [], {"policies": [policy("AbortJob", "OutOfSync")]}, "spec.policies[0].event", "internal", id="internal"
        ),
        pytest.param(
            [], {"policies": [policy("AbortJob", "pod failed")]}, "spec.policies[0].event", "CamelCase", id="bad event"
        ),
        pytest.param(
            [],
            {"policies": [policy("AbortJob", "PodFailed"), policy("RestartJob", "PodEvicted", "PodFailed")]},
            "spec.policies[1]",
            "is for event PodFailed, as is spec.policies[0]; keep one of them",
            id="two policies for an event",
        ),
        pytest.param(
            [task(policies=[policy("AbortJob", exitCode=3), policy("RestartJob", exitCode=3)])],
            {},
            "spec.tasks[0].policies[1]",
            "is for exit code 3",
            id="two policies for an exit code",
        ),
        pytest.param(
            [task(policies=[policy("AbortJob", "*", timeout="5 minutes")])],
            {},
            "spec.tasks[0].policies[0].timeout",
            "90s",
            id="bad timeout",
        ),
        pytest.param(
            [], {"plugins": {"ssh": []}}, "spec.plugins[ssh]", "env, svc", id="a plugin that is not supported"
        ),
        pytest.param([], {"volumes": [{"mountPath": "/x"}]}, "spec.volumes[0]", "either", id="a volume of nothing"),
        pytest.param(
            [], {"annotations": {"poseidon.io/main-task": "x"}}, "main-task", "has w", id="a main task that is none"
        ),
        pytest.param(
            [],
            {"annotations": {"poseidon.io/completion-policy": {"w": {"minSucceeded": 0}}}},
            "completion-policy",
            "w.minSucceeded is 0",
            id="no success needed",
        ),
        pytest.param(
            [],
            {"annotations": {"poseidon.io/retry-policy": {"delay": -1}}},
            "retry-policy",
            "delay is -1",
            id="a negative delay",
        ),
        pytest.param(
            [], {"annotations": {"poseidon.io/retry-policy": "{"}}, "retry-policy", "docs/jobs.md", id="no JSON"
        ),
    ],
)
def test_errors_name_the_field_and_the_remedy(tasks, fields, path, remedy):
    with pytest.raises(InvalidField) as error:
        job(*tasks, **fields)
    assert path in error.value.field
    assert remedy in error.value.reason
