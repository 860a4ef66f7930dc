"""The pods of a manifest, and the gang that they are."""

from typing import Any

import pytest

from poseidon_py.app.queries.manifests import manifest
from poseidon_py.app.queries.would_fit import Fitting, Question
from poseidon_py.describe.bandwidth import NOT_COUNTED
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING
from poseidon_py.state.gangs.model import Unknown
from poseidon_py.state.gangs.without_marks import conventions
from protos.gen import flow_pb2
from tests.poseidon_py.state.gangs.builders import CREATED_US, Objects, owner_or_group

LIGHT = {"scheduling.x-k8s.io/pod-group": "g"}


def template(cpu="1", labels=None, annotations=None, **spec: Any):
    containers = [{"name": "c", "image": "x", "resources": {"requests": {"cpu": cpu}}}]
    return {
        "metadata": {"labels": labels or {}, "annotations": annotations or {}},
        "spec": {"containers": containers, **spec},
    }


def item(kind, group, spec, annotations=None, name="w"):
    version = f"{group}/v1" if group else "v1"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "annotations": annotations or {}},
        "spec": spec,
    }


def volcano_job(*tasks, **spec):
    """Tasks without a name or a template: `a`, and a pod of 1 cpu."""
    made = [{"name": "a", "template": template(), **task} for task in tasks]
    return item("Job", "batch.volcano.sh", {"tasks": made, **spec})


def pod(name="w", **fields):
    made = template(**fields)
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {**made["metadata"], "name": name}, "spec": made["spec"]}


def fitting(*objects, cluster=None, gangs_from=(), **fields):
    return Fitting(
        Question(objects=list(objects), namespace="ns", **fields),
        cluster if cluster is not None else Objects(),
        without_marks=conventions(gangs_from),
        bandwidth=NOT_COUNTED,
        now_us=CREATED_US,
    )


def members(found):
    return [(getattr(each, "class").requests["cpu"], each.count) for each in found.request.members]


JOB = item("Job", "batch", {"parallelism": 4, "completions": 3, "template": template()})
ROLES = {"Launcher": {"replicas": 1, "template": template("2")}, "Worker": {"replicas": 3, "template": template()}}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        ([pod(cpu="2")], [(2000, 1)]),
        ([JOB], [(1000, 3)]),
        (
            [item("CronJob", "batch", {"jobTemplate": {"spec": {"parallelism": 2, "template": template()}}})],
            [(1000, 2)],
        ),
        ([item("Deployment", "apps", {"replicas": 5, "template": template()})], [(1000, 5)]),
        ([item("StatefulSet", "apps", {"template": template()})], [(1000, 1)]),
        ([item("ReplicationController", "", {"replicas": 2, "template": template()})], [(1000, 2)]),
        (
            [
                item(
                    "JobSet",
                    "jobset.x-k8s.io",
                    {
                        "replicatedJobs": [
                            {
                                "name": "a",
                                "replicas": 2,
                                "template": {"spec": {"parallelism": 2, "template": template()}},
                            },
                            {"name": "b", "template": {"spec": {"template": template("3")}}},
                        ]
                    },
                )
            ],
            [(1000, 4), (3000, 1)],
        ),
        ([item("MPIJob", "kubeflow.org", {"mpiReplicaSpecs": ROLES})], [(2000, 1), (1000, 3)]),
        (
            [
                item(
                    "RayCluster",
                    "ray.io",
                    {
                        "headGroupSpec": {"template": template("2")},
                        "workerGroupSpecs": [
                            {"groupName": "w", "replicas": 2, "numOfHosts": 2, "template": template()}
                        ],
                    },
                )
            ],
            [(2000, 1), (1000, 4)],
        ),
        (
            [
                item(
                    "LeaderWorkerSet",
                    "leaderworkerset.x-k8s.io",
                    {"replicas": 2, "leaderWorkerTemplate": {"size": 3, "workerTemplate": template()}},
                )
            ],
            [(1000, 1), (1000, 2)],
        ),
        ([{"apiVersion": "v1", "kind": "List", "items": [pod(), None, JOB]}], [(1000, 1), (1000, 3)]),
        ([pod(), item("Service", "", {})], [(1000, 1)]),
        (
            [volcano_job({"replicas": 2}, {"name": "b", "replicas": 3, "template": template("2")})],
            [(1000, 2), (2000, 3)],
        ),
        ([volcano_job({"replicas": 1}, {"name": "b", "dependsOn": {"name": ["a"]}})], [(1000, 1)]),
        # one that is invalid does not spoil the others
        ([pod(cpu="many"), JOB, 3, item("Job", "batch", {"parallelism": "x"}), pod()], [(1000, 3), (1000, 1)]),
    ],
)
def test_the_pods_of_each_kind(objects, expected):
    assert members(fitting(*objects, minimum=0)) == expected


@pytest.mark.parametrize(
    ("objects", "fields", "expected"),
    [
        # minimum, topology, what declares the gang
        ([JOB], {}, (0, "", "")),
        ([JOB], {"gangs_from": ["jobs"]}, (3, "", "Job")),
        (
            [JOB | {"metadata": {"name": "w", "annotations": {"poseidon.io/gang": "all"}}}],
            {},
            (3, "", "poseidon.io/gang"),
        ),
        ([JOB], {"minimum": 2}, (2, "", "")),
        ([JOB], {"minimum": 2, "topology": "zone"}, (2, "zone", "")),
        (
            [
                item("PodGroup", "scheduling.x-k8s.io", {"minMember": 2}, name="g"),
                *(pod(n, labels=LIGHT) for n in "abc"),
            ],
            {},
            (2, "", "scheduling.x-k8s.io PodGroup"),
        ),
        (
            [item("MPIJob", "kubeflow.org", {"mpiReplicaSpecs": ROLES})],
            {"gangs_from": ["mpijobs"]},
            (4, "", "MPIJob"),
        ),
        ([pod()], {"gangs_from": ["jobs"]}, (0, "", "")),
        ([volcano_job({"replicas": 3})], {}, (3, "", "Volcano")),
        ([volcano_job({"replicas": 3}, minAvailable=2)], {}, (2, "", "Volcano")),
    ],
)
def test_the_gang_is_declared_as_in_the_cluster(objects, fields, expected):
    found = fitting(*objects, **fields)
    gang = found.answer(flow_pb2.FitReply())["gang"]
    assert (found.request.minimum, found.request.topology_key, gang) == expected


def test_a_pod_group_of_the_cluster_counts():
    cluster = Objects((COSCHEDULING, owner_or_group(COSCHEDULING, "g", spec={"minMember": 2})))
    assert fitting(*(pod(n, labels=LIGHT) for n in "ab"), cluster=cluster).request.minimum == 2
    cluster.unknown.add((COSCHEDULING, "ns", "g"))
    with pytest.raises(Unknown):
        fitting(pod(labels=LIGHT), cluster=cluster)


@pytest.mark.parametrize(
    ("objects", "fields", "says"),
    [
        ([], {}, "the manifest: no pods; give a Pod, or a Job"),
        ([item("Service", "", {})], {}, "the manifest: no pods"),
        ([3], {}, "object 1: is not a Kubernetes object"),
        ([item("Job", "batch", {"parallelism": "x", "template": template()})], {}, "Job ns/w"),
        ([item("Job", "batch", {"parallelism": 1})], {}, "Job ns/w: spec.template: is missing; give it"),
        (
            [item("Deployment", "apps", {"replicas": -1, "template": template()})],
            {},
            "Deployment ns/w: spec.replicas: -1 is not valid; give a whole number, 0 or more",
        ),
        (
            [item("TFJob", "kubeflow.org", {"tfReplicaSpecs": [1]})],
            {},
            "TFJob ns/w: spec.tfReplicaSpecs: is not a mapping; give one",
        ),
        ([pod(cpu="many")], {}, "pod/w: spec.containers[0].resources.requests"),
        ([pod(containers=[])], {}, "pod/w: spec.containers: is empty; give at least one container"),
        ([pod(labels=LIGHT)], {}, 'pod/w: pod group "ns/g" not found'),
        ([pod(annotations={"poseidon.io/gang": "x", "poseidon.io/gang-name": "g"})], {}, "annotation poseidon.io/gang"),
        ([JOB, pod()], {"gangs_from": ["jobs"]}, "has several gangs (ns/w, pods without a gang); give one of them"),
        ([JOB], {"minimum": 4}, "minimum: is 4, of 3 pods; give 0 to 3"),
        ([JOB], {"topology": "zone"}, "topology: needs pods that are placed together; give a minimum"),
    ],
)
def test_errors_name_the_object_and_the_field(objects, fields, says):
    with pytest.raises(InvalidField) as error:
        fitting(*objects, **fields)
    assert says in str(error.value)


def test_what_is_left_out_is_noted():
    objects = [
        pod(cpu="many"),
        pod("b"),
        3,
        volcano_job(),
        volcano_job({"replicas": 1}, {"name": "z", "dependsOn": {"name": ["a"]}}),
    ]
    found = fitting(*objects, minimum=0)
    notes = found.answer(flow_pb2.FitReply())["notes"]
    says = (
        "left out: object 3: is not a Kubernetes object",
        "left out: Job ns/w: spec.tasks: is empty; give at least one task",
        "the task z of Job ns/w is not taken into account: it starts after others",
        "left out: pod/w: spec.containers[0].resources.requests",
    )
    for text in says:
        assert [note for note in notes if note.startswith(text)], f"{text} is not among {notes}"
    assert members(found) == [(1000, 1), (1000, 1)]


def test_requests_are_limits_where_they_are_missing():
    container = {"name": "c", "resources": {"limits": {"cpu": "3", "memory": "1Gi"}, "requests": {"cpu": "1"}}}
    (member,) = fitting(pod(containers=[container])).request.members
    requests = getattr(member, "class").requests
    assert (requests["cpu"], requests["memory"]) == (1000, 2**30)


def test_priorities_and_what_is_not_taken_into_account():
    def priority(*objects, **fields):
        found = fitting(*objects, **fields)
        return getattr(found.request.members[0], "class").priority, found.answer(flow_pb2.FitReply())["notes"]

    assert priority(pod(priority=7), priority=3) == (7, [])
    assert priority(pod(), priority=3) == (3, [])
    assert priority(pod(priorityClassName="system-node-critical")) == (2_000_001_000, [])
    note = "the priority class high of Pod ns/w is not resolved: they count with priority 0; give --priority"
    assert priority(pod(priorityClassName="high")) == (0, [note])
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    assert priority(pod(volumes=[claim]))[1] == ["the volumes of Pod ns/w are not taken into account"]


def test_equal_labels_share_a_profile():
    found = fitting(pod("a", labels={"x": "1"}), pod("b", labels={"x": "1"}), pod("c"))
    assert [dict(each.labels) for each in found.request.profiles] == [{"x": "1"}, {}]
    assert found.request.members[0].profile_id == found.request.members[1].profile_id


def test_the_answer_names_workloads():
    found = fitting(JOB, pod("p", cpu="2"), minimum=0)
    job, single = (getattr(each, "class").id for each in found.request.members)
    reply = flow_pb2.FitReply(fits=False, at_best=-1, seconds=0.5)
    reply.places.add(class_id=single, node="b", count=1, after_evictions=True)
    reply.places.add(class_id=job, node="a", count=2)
    waiting = reply.unscheduled.add(class_id=job, waiting=1, nodes=2)
    waiting.reasons.add(kind=flow_pb2.Reason.INSUFFICIENT_RESOURCE, detail="cpu", nodes=2)
    answer = found.answer(reply)
    assert [(each["workload"], each["node"], each["count"]) for each in answer["places"]] == [
        ("job/w", "a", 2),
        ("pod/p", "b", 1),
    ]
    assert answer["waiting"] == [
        {"workload": "job/w", "count": 1, "message": "0/2 nodes are available: 2 Insufficient cpu."}
    ]
    assert (answer["pods"], answer["minimum"], answer["at_best"]) == (4, 0, None)
    with pytest.raises(InvalidField, match="the flow service: no copy"):
        found.answer(flow_pb2.FitReply(problem="no copy"))


def test_pods_are_as_they_would_be_created():
    spec = {"nodeName": "n", "schedulingGates": [{"name": "g"}]}
    (found,) = manifest([pod(**spec)], "ns", None).templates
    assert (found.pod.spec.node_name, found.pod.spec.gates) == (None, None)


def test_label_keys_of_affinity_are_merged_as_the_api_server_does_for_new_pods():
    term = {"topologyKey": "z", "labelSelector": {}, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["absent"]}
    near = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    [got] = fitting(pod(labels={"app": "a"}, affinity=near)).request.members
    [affinity] = getattr(got, "class").affinity
    assert [(each.key, each.operator, list(each.values)) for each in affinity.selector.labels] == [("app", "In", ["a"])]
