"""The objects that are created for a job."""

import pytest

from poseidon_py.jobs.manifests import claims, plugins
from poseidon_py.jobs.manifests.owner import Owner
from poseidon_py.jobs.manifests.pod_group import group_spec, pod_group
from poseidon_py.jobs.manifests.pods import pod
from poseidon_py.jobs.rules.status import JobStatus
from poseidon_py.jobs.rules.world import Creation
from poseidon_py.kube.objects import InvalidField
from tests.poseidon_py.jobs.builders import job, task, template

OWNER = Owner("ns", "j", "uid", {"volcano.sh/preemptable": "true"}, {"volcano.sh/jdb-min-available": "2", "x": "y"})
STATUS = JobStatus(version=3, retry_count=4)


def requesting(requested, **limits):
    resources = {"requests": {"cpu": requested}} if requested else {"limits": limits}
    return {"spec": {"containers": [{"name": "c", "image": "i", "resources": resources}]}}


def test_a_pod_has_what_its_template_its_task_and_its_job_say():
    partitions = {"totalPartitions": 2, "partitionSize": 2}
    spec = job(task("a", 4, partitionPolicy=partitions, topologyPolicy="restricted"), queue="q", priorityClassName="p")
    found = pod(OWNER, spec, STATUS, Creation("a", 3, 12.5))
    labels, annotations = found["metadata"]["labels"], found["metadata"]["annotations"]
    assert found["metadata"]["name"] == "j-a-3"
    assert (labels["volcano.sh/partition-id"], labels["volcano.sh/preemptable"]) == ("1", "true")
    assert (annotations["volcano.sh/job-version"], annotations["volcano.sh/job-retry-count"]) == ("3", "4")
    assert annotations["volcano.sh/jdb-min-available"] == "2"
    assert annotations["volcano.sh/numa-topology-policy"] == "restricted"
    assert annotations["poseidon.io/evicted-at"] == "12.500"
    assert "x" not in annotations
    assert (found["spec"]["schedulerName"], found["spec"]["priorityClassName"]) == ("poseidon", "p")
    assert labels["volcano.sh/queue-name"] == "q"


def test_a_template_keeps_what_it_says_itself():
    own = template(schedulerName="s", priorityClassName="own", hostNetwork=True, hostname="h")
    own["metadata"] = {"labels": {"app": "x", "volcano.sh/job-name": "another"}}
    spec = job(task("a", 2, template=own), schedulerName="t", priorityClassName="p", plugins={"svc": []})
    found = pod(OWNER, spec, STATUS, Creation("a", 1))
    assert (found["spec"]["schedulerName"], found["spec"]["priorityClassName"]) == ("s", "own")
    assert (found["spec"]["dnsPolicy"], found["spec"]["hostname"]) == ("ClusterFirstWithHostNet", "h")
    assert found["metadata"]["labels"]["app"] == "x"
    assert found["metadata"]["labels"]["volcano.sh/job-name"] == "j", "pods are found by it"
    assert plugins.hosts(OWNER, spec) == {"a.host": "h.j", "VC_A_HOSTS": "h.j", "VC_A_NUM": "1"}
    assert own["spec"].get("volumes") is None, "the template was changed"


def test_volumes_are_mounted_in_all_containers_and_claims_created():
    volumes = [{"mountPath": "/a", "volumeClaimName": "there"}, {"mountPath": "/b", "volumeClaim": {"x": 1}}]
    spec = job(volumes=volumes)
    found = pod(OWNER, spec, STATUS, Creation("w", 0))["spec"]
    assert [each["persistentVolumeClaim"]["claimName"] for each in found["volumes"]] == ["there", "j-pvc-1"]
    assert [each["mountPath"] for each in found["containers"][0]["volumeMounts"]] == ["/a", "/b"]
    ((path, claim),) = claims.claims(OWNER, spec)
    assert (path.format("ns"), claim["metadata"]["name"]) == ("/api/v1/namespaces/ns/persistentvolumeclaims", "j-pvc-1")


@pytest.mark.parametrize(
    ("minimum", "needed"),
    [
        # a needs 2 of 1 cpu, b needs 1 of 500m
        pytest.param(3, {"cpu": "2500m"}, id="the minimum of each task"),
        pytest.param(4, {"cpu": "3500m"}, id="and one pod of a"),
        pytest.param(6, {"cpu": "4500m"}, id="all pods"),
        pytest.param(1, {"cpu": "1000m"}, id="fewer than the tasks need: the first of them"),
    ],
)
def test_the_group_requests_what_its_minimum_of_pods_does(minimum, needed):
    tasks = task("a", 3, minAvailable=2, template=requesting("1")), task("b", 3, minAvailable=1)
    tasks[1]["template"] = requesting("", cpu="500m")
    found = group_spec(job(*tasks, minAvailable=minimum), {})
    assert (found["minMember"], found["minResources"]) == (minimum, needed)


def test_the_group_does_not_wait_for_tasks_that_have_not_started():
    spec = job(task("a", 2), task("b", 3, dependsOn={"name": ["a"]}), networkTopology={"mode": "hard"})
    found = pod_group(OWNER, spec, 3, {"a": True, "b": False})
    assert (found["spec"]["minMember"], found["spec"]["minTaskMember"]) == (2, {"a": 2})
    assert found["spec"]["networkTopology"] == {"mode": "hard"}
    assert found["metadata"]["annotations"]["volcano.sh/job-version"] == "3"
    assert found["metadata"]["name"] == "j-uid"


def test_arguments_of_svc():
    arguments = ["--publish-not-ready-addresses=true", "--disable-network-policy", "-inject-hosts-env=false"]
    spec = job(plugins={"svc": arguments})
    found = {body["kind"]: body for _, body in plugins.objects(OWNER, spec)}
    assert set(found) == {"ConfigMap", "Service"}
    assert found["Service"]["spec"]["publishNotReadyAddresses"] is True
    assert "env" not in pod(OWNER, spec, STATUS, Creation("w", 0))["spec"]["containers"][0]
    with pytest.raises(InvalidField, match="is no argument"):
        plugins.svc_arguments(["--expose"])
