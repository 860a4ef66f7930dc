"""Objects, and what the admission policies say of them.

test_admission.py asks an evaluator of CEL, e2e/test_admission.py an API server."""

from __future__ import annotations

from typing import Any, NamedTuple

Json = dict[str, Any]

SCHEDULER = "poseidon"


class Case(NamedTuple):
    """`message`: the message of a refusal, or its parts; empty: the object is permitted."""

    policy: str
    item: Json
    message: tuple[str, ...]


def metadata(annotations: Json | None = None, labels: Json | None = None) -> Json:
    found = {"name": "a"}
    return found | {"annotations": annotations or {}, "labels": labels or {}}


def a_pod(annotations: Json | None = None, labels: Json | None = None, scheduler: str = SCHEDULER) -> Json:
    spec = {"schedulerName": scheduler, "containers": [{"name": "c", "image": "x"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata(annotations, labels), "spec": spec}


def a_template(annotations: Json | None = None, scheduler: str = SCHEDULER) -> Json:
    pod = a_pod(annotations, {"app": "a"}, scheduler)
    pod["metadata"].pop("name")
    pod["spec"]["restartPolicy"] = "Never"
    return {"metadata": pod["metadata"], "spec": pod["spec"]}


def a_job(annotations: Json | None = None, of_template: Json | None = None, scheduler: str = SCHEDULER) -> Json:
    spec = {"template": a_template(of_template, scheduler)}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata(annotations), "spec": spec}


WRONG = {"poseidon.io/gnag": "2"}
WHY = "[poseidon.io/gnag]: is not known and has no effect; did you mean poseidon.io/gang?"
NOT_KNOWN = "is not known and has no effect; "


def _on_pod(key: str, value: str, message: str) -> Case:
    return Case("pods", a_pod({key: value}), (f"metadata.annotations[{key}]: {message}",))


def _on_label(key: str, value: str, message: str) -> Case:
    return Case("pods", a_pod(labels={key: value}), (f"metadata.labels[{key}]: {message}",))


PODS = {
    "nothing": Case("pods", a_pod(), ()),
    "keys of others": Case("pods", a_pod({"gnag": "1", "example.com/gnag": "1", "x.poseidon.io/gnag": "1"}), ()),
    "all is right": Case(
        "pods",
        a_pod(
            {"poseidon.io/gang": "4", "poseidon.io/gang-name": "g", "poseidon.io/expected-duration": "1h30m"},
            {"poseidon.io/queue": "team-a"},
        ),
        (),
    ),
    "what the scheduler writes": Case("pods", a_pod({"poseidon.io/preempted-by": "x"}), ()),
    "of another scheduler": Case("pods", a_pod(WRONG, scheduler="default-scheduler"), ()),
    "swapped letters": _on_pod("poseidon.io/gnag", "2", f"{NOT_KNOWN}did you mean poseidon.io/gang?"),
    "camel case": _on_pod("poseidon.io/gangMin", "2", f"{NOT_KNOWN}did you mean poseidon.io/gang-min?"),
    "two are alike": _on_pod(
        "poseidon.io/gang-mix", "2", f"{NOT_KNOWN}did you mean poseidon.io/gang-max or poseidon.io/gang-min?"
    ),
    "nothing is alike": _on_pod("poseidon.io/colour", "red", f"{NOT_KNOWN}known are poseidon.io/data, "),
    "a label as an annotation": _on_pod("poseidon.io/queue", "a", f"{NOT_KNOWN}give it as a label"),
    "an annotation as a label": _on_label("poseidon.io/gang-min", "2", f"{NOT_KNOWN}give it as an annotation"),
    "a label of nothing": _on_label("poseidon.io/quue", "a", f"{NOT_KNOWN}did you mean poseidon.io/queue?"),
    "of a node": _on_pod("poseidon.io/ingress-bandwidth", "1G", f"{NOT_KNOWN}known are "),
    "not a count": _on_pod("poseidon.io/gang-min", "0", '"0" is not valid; give a whole number from 1'),
    "not a switch": _on_pod("poseidon.io/preempt", "True", '"True" is not valid; give true or false'),
    "not a duration": _on_pod("poseidon.io/preemption-notice", "10min", '"10min" is not valid; give a duration like'),
    "two lines": _on_pod("poseidon.io/preempt", "a\nb", "the value is not valid; give true or false"),
    "a long value": _on_pod("poseidon.io/preempt", "a" * 65, "the value is not valid; give true or false"),
    "several": Case(
        "pods",
        a_pod({"poseidon.io/gang": "many", **WRONG}, {"poseidon.io/usr": "ana"}),
        (f"metadata.annotations{WHY}; ", '[poseidon.io/gang]: "many" is not valid; ', "did you mean poseidon.io/user?"),
    ),
}


def _deployment(kind: str) -> Json:
    template = a_template(WRONG)
    template["spec"]["restartPolicy"] = "Always"
    spec: Json = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    if kind == "StatefulSet":
        spec["serviceName"] = "a"
    return {"apiVersion": "apps/v1", "kind": kind, "metadata": metadata(), "spec": spec}


_REPLICATION_CONTROLLER = {
    "apiVersion": "v1",
    "kind": "ReplicationController",
    "metadata": metadata(),
    "spec": {"selector": {"app": "a"}, "template": _deployment("ReplicaSet")["spec"]["template"]},
}
_CRON_JOB = {
    "apiVersion": "batch/v1",
    "kind": "CronJob",
    "metadata": metadata(),
    "spec": {"schedule": "0 0 * * *", "jobTemplate": {"spec": {"template": a_template(WRONG)}}},
}
_TASKS = [{"name": "one", "template": a_template()}, {"name": "two", "template": a_template(WRONG)}]


def volcano_job(spec: Json) -> Json:
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata(), "spec": spec}


_WITHOUT_NAME = a_template(WRONG)
del _WITHOUT_NAME["spec"]["schedulerName"]

OWNERS = {
    **{
        kind: Case("owners", _deployment(kind), (f"spec.template.metadata.annotations{WHY}",))
        for kind in ("Deployment", "ReplicaSet", "StatefulSet", "DaemonSet")
    },
    "ReplicationController": Case("owners", _REPLICATION_CONTROLLER, (f"spec.template.metadata.annotations{WHY}",)),
    "Job": Case("owners", a_job(of_template=WRONG), (f"spec.template.metadata.annotations{WHY}",)),
    "Job itself": Case("owners", a_job(WRONG), (f"metadata.annotations{WHY}",)),
    "Job of another scheduler": Case("owners", a_job(WRONG, WRONG, scheduler="volcano"), ()),
    "Job that is right": Case(
        "owners", a_job({"poseidon.io/gang": "all", "poseidon.io/suspended": "x"}, {"poseidon.io/gang-min": "2"}), ()
    ),
    "CronJob": Case("owners", _CRON_JOB, (f"spec.jobTemplate.spec.template.metadata.annotations{WHY}",)),
    "Volcano": Case(
        "owners",
        volcano_job({"tasks": _TASKS, "schedulerName": SCHEDULER}),
        (f"spec.tasks[two].template.metadata.annotations{WHY}",),
    ),
    "Volcano, scheduler of the job": Case(
        "owners",
        volcano_job({"schedulerName": SCHEDULER, "tasks": [{"name": "w", "template": _WITHOUT_NAME}]}),
        (f"spec.tasks[w].template.metadata.annotations{WHY}",),
    ),
    "Volcano, its own scheduler": Case(
        "owners", volcano_job({"tasks": [{"name": "w", "template": _WITHOUT_NAME}]}), ()
    ),
    "Volcano, families of keys": Case(
        "owners",
        {
            **volcano_job({"tasks": _TASKS[:1]}),
            "metadata": metadata({"poseidon.io/task.worker": "Running", "poseidon.io/main-task": "one"}),
        },
        (),
    ),
}


def _custom(kind: str, spec: Json) -> Json:
    return {"apiVersion": "example/v1", "kind": kind, "metadata": {"name": "a"}, "spec": spec}


_RAY = {
    "headGroupSpec": {"template": a_template()},
    "workerGroupSpecs": [{"groupName": "g", "template": a_template(WRONG)}, {"groupName": "empty"}],
}
CUSTOM = {
    "JobSet": Case(
        "owners",
        _custom("JobSet", {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": a_template(WRONG)}}}]}),
        (f"spec.replicatedJobs[w].template.spec.template.metadata.annotations{WHY}",),
    ),
    "LeaderWorkerSet": Case(
        "owners",
        _custom("LeaderWorkerSet", {"leaderWorkerTemplate": {"workerTemplate": a_template(WRONG)}}),
        (f"spec.leaderWorkerTemplate.workerTemplate.metadata.annotations{WHY}",),
    ),
    "PyTorchJob": Case(
        "owners",
        _custom("PyTorchJob", {"pytorchReplicaSpecs": {"Worker": {"template": a_template(WRONG)}, "Master": {}}}),
        (f"spec.pytorchReplicaSpecs[Worker].template.metadata.annotations{WHY}",),
    ),
    "RayCluster": Case(
        "owners", _custom("RayCluster", _RAY), (f"spec.workerGroupSpecs[g].template.metadata.annotations{WHY}",)
    ),
    "RayJob": Case(
        "owners",
        _custom("RayJob", {"rayClusterSpec": _RAY}),
        (f"spec.rayClusterSpec.workerGroupSpecs[g].template.metadata.annotations{WHY}",),
    ),
    "RayJob without a cluster": Case("owners", _custom("RayJob", {"clusterSelector": {"a": "b"}}), ()),
    "RayService": Case(
        "owners",
        _custom("RayService", {"rayClusterConfig": {"headGroupSpec": {"template": a_template(WRONG)}}}),
        (f"spec.rayClusterConfig.headGroupSpec.template.metadata.annotations{WHY}",),
    ),
    "without a spec": Case("owners", {"metadata": {"name": "a"}}, ()),
}
"""Kinds whose definitions no API server here has."""


def a_namespace(labels: Json) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a", "labels": labels}}


NAMESPACES = {
    "namespace": Case("namespaces", a_namespace({"poseidon.io/movable": "true"}), ()),
    "namespace, value": Case(
        "namespaces",
        a_namespace({"poseidon.io/movable": "yes"}),
        ('metadata.labels[poseidon.io/movable]: "yes" is not valid; give true or false',),
    ),
    "namespace, key": Case(
        "namespaces",
        a_namespace({"poseidon.io/moveable": "true"}),
        (f"metadata.labels[poseidon.io/moveable]: {NOT_KNOWN}did you mean poseidon.io/movable?",),
    ),
}

SERVED = PODS | OWNERS | NAMESPACES
"""Of kinds that an API server has, with the definitions of the chart."""
