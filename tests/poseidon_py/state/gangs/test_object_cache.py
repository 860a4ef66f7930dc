"""Objects found by discovery, over HTTP from a synthetic API server."""

import msgspec
import pytest

from poseidon_py.kube.client import ApiError, BusyError, NotFoundError, UnreachableError
from poseidon_py.state.gangs.by_owner import JOBS, REPLICATION_CONTROLLERS
from poseidon_py.state.gangs.by_pod_group import COSCHEDULING, PRIORITY_CLASSES
from poseidon_py.state.gangs.decode import Item
from poseidon_py.state.gangs.model import Owner, Unknown
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from tests.poseidon_py.settling import VirtualTime, settle, turns_until
from tests.poseidon_py.state.gangs.builders import JOB, owner_or_group
from tests.poseidon_py.state.gangs.discovery import Api, Retries, object_cache, recheck


@pytest.fixture
def retries():
    return Retries()


@pytest.fixture
async def time():
    return VirtualTime()


@pytest.fixture
async def rig(retries):
    api = Api()
    known: list[str] = []
    changed: list[tuple[str, bool]] = []

    def take(resource, owner_or_group, gone=False):
        changed.append((owner_or_group.name, gone))

    async with object_cache(api, take, known.append, retries) as found:
        yield api, found, known, changed


async def test_looked_up_objects_are_discovered_and_listed(rig):
    _api, found, known, _ = rig
    with pytest.raises(Unknown):
        found.find(JOBS, "ns", "j")
    await settle()
    assert known == ["jobs.batch"]
    assert found.find(JOBS, "ns", "j") is None


async def test_a_definition_that_is_not_installed_is_looked_for_again(rig):
    api, found, _known, _ = rig
    with pytest.raises(Unknown):
        found.find(COSCHEDULING, "ns", "g")
    await settle()
    assert found.find(COSCHEDULING, "ns", "g") is None
    api.served |= {"/apis/scheduling.x-k8s.io": ["v1alpha1"], "/apis/scheduling.x-k8s.io/v1alpha1": ["podgroups"]}
    recheck(found)
    await settle()
    assert (
        found.path_of(COSCHEDULING, owner_or_group(COSCHEDULING, "g"))
        == "/apis/scheduling.x-k8s.io/v1alpha1/namespaces/ns/podgroups/g"
    )


UNSUPPORTED = "is served in v9, not in {}, which are supported; serve one of these, or upgrade the scheduler"


async def test_pod_groups_in_an_unsupported_version_are_not_known(rig, caplog):
    """Their fields may mean something else there: they were read as those of v1alpha1."""
    api, found, _known, _ = rig
    api.served |= {"/apis/scheduling.x-k8s.io": ["v9"], "/apis/scheduling.x-k8s.io/v9": ["podgroups"]}
    for _ in range(2):
        with pytest.raises(Unknown) as lookup:
            found.find(COSCHEDULING, "ns", "g")
        await settle()
    why = "podgroups.scheduling.x-k8s.io " + UNSUPPORTED.format("v1alpha1")
    assert lookup.value.why == why
    assert f"{why}; until then gangs and queues that its objects declare" in caplog.text
    assert not found.is_known(COSCHEDULING)


async def test_of_owners_in_an_unsupported_version_the_metadata_is_read(rig, caplog):
    """Their pods stay in their queues; the numbers in their specs are not known."""
    api, found, _known, _ = rig
    api.served |= {"/apis/ray.io": ["v9"], "/apis/ray.io/v9": ["rayclusters"]}
    api.listed["/apis/ray.io/v9/rayclusters"] = [
        '{"metadata": {"name": "r", "namespace": "ns", "uid": "uid-r", "labels": {"kueue.x-k8s.io/queue-name": "q"}}}'
    ]
    owner = await read(found, Owner("RayCluster", "r", "uid-r", "ray.io"))
    assert owner.queue_labels == (("kueue.x-k8s.io/queue-name", "q"),)
    assert owner.counts.problem == "rayclusters.ray.io " + UNSUPPORTED.format("v1 or v1beta1")
    assert api.metadata_only == ["/apis/ray.io/v9/rayclusters"]
    assert "until then only the metadata of its objects is read" in caplog.text
    assert not found.serves(OWNER_KINDS["rayclusters"].resource)
    api.served |= {"/apis/ray.io": ["v9", "v1"], "/apis/ray.io/v1": ["rayclusters"]}
    recheck(found)
    await settle()
    assert found.owner(Owner("RayCluster", "r", "uid-r", "ray.io"), "ns") is None  # it is not in the list of v1
    assert found.serves(OWNER_KINDS["rayclusters"].resource)


async def test_forbidden_resources_count_as_absent(rig):
    api, found, _known, _ = rig
    api.denied.add("/apis/batch/v1/jobs")
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await settle()
    assert found.owner(JOB, "ns") is None


async def test_a_forbidden_resource_is_tried_again_with_one_warning(time, rig, caplog):
    api, found, _known, _ = rig
    api.denied.add("/apis/batch/v1/jobs")
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await time.elapse(60)
    assert len([each for each in caplog.records if "cannot watch jobs.batch" in each.message]) == 1
    api.denied.clear()
    await time.elapse(30)  # the longest delay between two lists
    assert found.path_of(JOBS, owner_or_group(JOBS, "j")) == "/apis/batch/v1/namespaces/ns/jobs/j"


async def test_resources_of_the_core_group_need_no_discovery(rig):
    api, found, known, _ = rig
    with pytest.raises(Unknown):
        found.owner(Owner("ReplicationController", "r", "uid-r"), "ns")
    await settle()
    assert known == ["replicationcontrollers"]
    assert api.asked == []
    entry = owner_or_group(REPLICATION_CONTROLLERS, "r")
    assert found.path_of(REPLICATION_CONTROLLERS, entry) == "/api/v1/namespaces/ns/replicationcontrollers/r"


async def test_an_owner_that_the_watch_has_not_shown_is_fetched(rig):
    api, found, _known, changed = rig
    path = "/apis/batch/v1/namespaces/ns/jobs/j"
    api.items[path] = '{"metadata": {"name": "j", "namespace": "ns", "uid": "uid-j"}, "spec": {"parallelism": 3}}'
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await settle()
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await settle()
    assert found.owner(JOB, "ns").counts.size == 3
    assert changed == [("j", False)]
    other = Owner("Job", "j", "uid-other", "batch")
    with pytest.raises(Unknown):
        found.owner(other, "ns")
    await settle()
    assert found.owner(other, "ns") is None  # the name is another's by now
    assert api.asked.count(path) == 2


async def read(found, owner):
    """The owner, once its lookups have ended."""
    for _ in range(4):
        try:
            return found.owner(owner, "ns")
        except Unknown:
            await settle()
    raise AssertionError("its lookups do not end")


FLINK = {"/apis/flink.apache.org": ["v1beta1"], "/apis/flink.apache.org/v1beta1": ["flinkdeployments"]}
APPLICATION = Owner("FlinkDeployment", "s", "uid-s", "flink.apache.org")


async def test_of_an_owner_of_any_kind_the_metadata_is_read(rig):
    """15 of Kueue's 47 examples have their label on a kind of which a scheduler knows nothing else."""
    api, found, known, _ = rig
    path = "/apis/flink.apache.org/v1beta1/flinkdeployments"
    api.served |= FLINK
    api.kinds["flinkdeployments"] = {"kind": "FlinkDeployment", "namespaced": True}
    api.listed[path] = [
        '{"metadata": {"name": "s", "namespace": "ns", "uid": "uid-s", "labels": {"kueue.x-k8s.io/queue-name": "q"}}}'
    ]
    assert (await read(found, APPLICATION)).queue_labels == (("kueue.x-k8s.io/queue-name", "q"),)
    assert api.metadata_only == [path]
    assert known == ["kind FlinkDeployment.flink.apache.org", "flinkdeployments.flink.apache.org"]


async def test_an_owner_of_the_cluster_is_fetched_without_a_namespace(rig):
    api, found, _known, _ = rig
    api.served |= {"/apis/x.io": ["v1"], "/apis/x.io/v1": ["fleets/status", "fleets"]}
    api.kinds |= {"fleets": {"kind": "Fleet", "namespaced": False}, "fleets/status": {"kind": "Fleet"}}
    api.items["/apis/x.io/v1/fleets/f"] = '{"metadata": {"name": "f", "uid": "uid-f"}}'
    owner = Owner("Fleet", "f", "uid-f", "x.io")
    assert (await read(found, owner)).name == "f"


async def test_a_kind_that_is_not_served_has_no_owners_until_it_is(rig, retries):
    api, found, known, _ = rig
    assert await read(found, APPLICATION) is None
    api.served |= FLINK
    api.kinds["flinkdeployments"] = {"kind": "FlinkDeployment", "namespaced": True}
    retries.now.set()
    await settle()
    assert known == ["kind FlinkDeployment.flink.apache.org"] * 2 + ["flinkdeployments.flink.apache.org"]


async def test_a_kind_that_may_not_be_read_is_said(rig):
    api, found, _known, _ = rig
    api.served |= FLINK
    api.kinds["flinkdeployments"] = {"kind": "FlinkDeployment", "namespaced": True}
    api.denied.add("/apis/flink.apache.org/v1beta1/flinkdeployments")
    assert await read(found, APPLICATION) is None
    assert found.unreadable(APPLICATION) == (
        "cannot watch flinkdeployments.flink.apache.org: 403 Forbidden: no; allow list and watch in the ClusterRole "
        "(docs/rbac.md)"
    )


@pytest.mark.parametrize("owner", [Owner("Node", "n", "uid-n"), Owner("Pod", "p", "uid-p")], ids=lambda each: each.kind)
async def test_nodes_and_pods_are_not_looked_up(rig, owner):
    api, found, _known, _ = rig
    assert found.owner(owner, "ns") is None
    await settle()
    assert api.asked == []


@pytest.mark.parametrize(
    "fault",
    [
        BusyError(429, "TooManyRequests", "later"),
        BusyError(503, "ServiceUnavailable", "starting"),
        ApiError(403, "Forbidden", "no role is known yet"),
        NotFoundError(404, "NotFound", "not installed yet"),
        UnreachableError("refused"),
    ],
)
async def test_a_restarting_api_server_does_not_remove_owners(rig, fault):
    api, found, _known, changed = rig
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await settle()
    body = {"metadata": {"name": "j", "namespace": "ns", "uid": "uid-j"}, "spec": {"parallelism": 3}}
    found._caches[JOBS].observe(msgspec.json.decode(msgspec.json.encode(body), type=Item))
    api.faults = [fault]
    recheck(found)
    await settle()
    assert found.owner(JOB, "ns").counts.size == 3
    assert changed == [("j", False)]
    assert api.faults == []


async def test_during_its_start_absence_is_confirmed_by_a_second_discovery(rig):
    api, found, known, _ = rig
    api.faults = [BusyError(503, "ServiceUnavailable", "starting")]
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await settle()
    assert known == ["jobs.batch"]
    assert found._caches[JOBS].informer.path


async def test_a_definition_that_is_removed_takes_its_objects_with_it(rig):
    api, found, _known, changed = rig
    api.served |= {"/apis/scheduling.x-k8s.io": ["v1alpha1"], "/apis/scheduling.x-k8s.io/v1alpha1": ["podgroups"]}
    with pytest.raises(Unknown):
        found.find(COSCHEDULING, "ns", "g")
    await settle()
    cache = found._caches[COSCHEDULING]
    cache.observe(_item("g"))
    assert found.find(COSCHEDULING, "ns", "g") is not None
    del api.served["/apis/scheduling.x-k8s.io"]
    recheck(found)
    await settle()
    assert found.find(COSCHEDULING, "ns", "g") is None
    assert changed == [("g", False), ("g", True)]


def _item(name):
    body = {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": {"minMember": 2}}
    return msgspec.json.decode(msgspec.json.encode(body), type=Item)


ODD = [
    pytest.param("<html>", id="html"),
    pytest.param("[]", id="list"),
    pytest.param('{"groups": 5, "resources": 5}', id="numbers"),
    pytest.param('{"groups": [{}], "resources": [{}]}', id="empty"),
    pytest.param("[" * 5000, id="deep"),
]


@pytest.mark.parametrize("path", ["/apis", "/apis/batch/v1"])
@pytest.mark.parametrize("odd", ODD)
async def test_an_invalid_discovery_answer_is_requested_again(rig, odd, path):
    api, found, known, _ = rig
    api.items[path] = odd
    with pytest.raises(Unknown):
        found.find(JOBS, "ns", "j")
    await turns_until(lambda: api.asked.count(path) == 3)  # there is no pause in between
    assert known == []
    del api.items[path]
    recheck(found)
    await settle()
    assert known == ["jobs.batch"]


@pytest.mark.parametrize("odd", ["<html>", "[]", '{"metadata": 5}', "[" * 5000])
async def test_an_invalid_owner_is_fetched_again(rig, retries, odd):
    api, found, known, _ = rig
    path = "/apis/batch/v1/namespaces/ns/jobs/j"
    api.items[path] = odd
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await settle()
    with pytest.raises(Unknown):
        found.owner(JOB, "ns")
    await settle()
    assert api.asked.count(path) == 1
    assert "jobs.batch/uid-j" not in known
    api.items[path] = '{"metadata": {"name": "j", "namespace": "ns", "uid": "uid-j"}, "spec": {"parallelism": 3}}'
    retries.now.set()
    await settle()
    assert api.asked.count(path) == 2
    assert found.owner(JOB, "ns").counts.size == 3
    assert "jobs.batch/uid-j" in known


async def test_a_watch_that_a_defect_ends_lists_again(retries, caplog):
    api = Api()
    known: list[str] = []
    changed: list[str] = []
    api.listed["/apis/batch/v1/jobs"] = ['{"metadata": {"name": "j", "namespace": "ns", "uid": "uid-j"}}']

    def take(resource, owner_or_group, gone=False):
        changed.append(owner_or_group.name)
        if len(changed) == 1:
            raise RuntimeError("odd")

    async with object_cache(api, take, known.append, retries) as found:
        with pytest.raises(Unknown):
            found.find(JOBS, "ns", "j")
        await settle()
        assert "RuntimeError: odd" in caplog.text
        retries.now.set()
        await settle()
        assert known == ["jobs.batch"]
        assert found.find(JOBS, "ns", "j") is not None
        assert changed == ["j", "j"]


# -- resources that are followed -------------------------------------------------------------------------------------


async def test_a_followed_resource_is_watched_although_nobody_looks_it_up(rig):
    """A Job that is created suspended has no pods."""
    api, found, _known, changed = rig
    about = '"namespace": "ns", "creationTimestamp": "2026-01-01T00:00:00Z"'
    api.listed["/apis/batch/v1/jobs"] = [
        f'{{"metadata": {{"name": "{name}", "uid": "uid-{name}", {about}}}, "spec": {{"suspend": true}}}}'
        for name in "ab"
    ]
    found.follow((JOBS, COSCHEDULING))
    await settle()
    assert changed == [("a", False), ("b", False)]
    assert [each.suspended for each in found.all_of(JOBS)] == [True, True]
    assert list(found.all_of(COSCHEDULING)) == []
    assert api.metadata_only == []


async def test_an_absent_resource_that_is_only_followed_is_discovered_rarely(time, rig):
    """There are a dozen such kinds in each cluster."""
    api, found, _known, _ = rig
    found.follow((COSCHEDULING,))
    await settle()
    counts = []
    for seconds, asked_for in ((6, False), (25, False), (6, False), (0, True), (6, False)):
        if asked_for:
            with pytest.raises(Unknown):
                found.find(COSCHEDULING, "ns", "g")
        await time.elapse(seconds)
        counts.append(api.asked.count("/apis"))
    assert counts == [1, 2, 2, 3, 4]  # each 30 s, at once when somebody asks, and then each 5 s


async def test_the_owners_that_an_owner_controls_are_known_until_they_are_gone(rig):
    _api, found, _known, _ = rig
    found.follow((JOBS,))
    await settle()
    jobs = found._caches[JOBS]
    owner = [
        {"uid": "uid-s", "kind": "JobSet", "name": "s", "apiVersion": "jobset.x-k8s.io/v1alpha2", "controller": True}
    ]
    made = "2026-01-01T00:00:00Z"
    metadata = {"name": "j", "namespace": "ns", "uid": "uid-j", "creationTimestamp": made, "ownerReferences": owner}
    item = msgspec.convert({"metadata": metadata}, Item)
    jobs.observe(item)
    assert [each.name for each in found.children("uid-s")] == ["j"]
    jobs.removed(item)
    assert list(found.children("uid-s")) == []
    assert found._children == {}


@pytest.mark.parametrize("followed", [False, True])
async def test_a_kind_that_is_installed_right_before_its_first_object_is_found(rig, followed):
    """Its pods were placed one by one where the scheduler had found out before that the kind was not served."""
    api, found, _known, _ = rig
    resource = OWNER_KINDS["rayclusters"].resource
    owner = Owner("RayCluster", "r", "uid-r", "ray.io")
    if followed:
        found.follow([resource])
    else:
        assert await read(found, Owner("RayCluster", "x", "uid-x", "ray.io")) is None
    await settle()
    api.served |= {"/apis/ray.io": ["v1"], "/apis/ray.io/v1": ["rayclusters"]}
    api.items["/apis/ray.io/v1/namespaces/ns/rayclusters/r"] = (
        '{"metadata": {"name": "r", "namespace": "ns", "uid": "uid-r"}, "spec": {}}'
    )
    with pytest.raises(Unknown):
        found.owner(owner, "ns")
    recheck(found)
    await settle()
    assert (await read(found, owner)).counts.size == 1


async def test_an_unknown_kind_that_is_installed_right_before_its_first_object_is_found(rig):
    api, found, _known, _ = rig
    assert await read(found, Owner("FlinkDeployment", "x", "uid-x", "flink.apache.org")) is None
    api.served |= FLINK
    api.kinds["flinkdeployments"] = {"kind": "FlinkDeployment", "namespaced": True}
    path = "/apis/flink.apache.org/v1beta1"
    api.items[f"{path}/namespaces/ns/flinkdeployments/s"] = (
        '{"metadata": {"name": "s", "namespace": "ns", "uid": "uid-s"}}'
    )
    assert (await read(found, APPLICATION)).name == "s"


async def test_whether_all_objects_of_a_resource_are_known(time, rig):
    """A resource that may not be read is not, until it may; one that is not served has no objects."""
    api, found, known, _ = rig
    assert not found.is_known(PRIORITY_CLASSES)
    found.follow((PRIORITY_CLASSES, COSCHEDULING))
    path = "/apis/scheduling.k8s.io/v1/priorityclasses"
    api.served |= {"/apis/scheduling.k8s.io": ["v1"], "/apis/scheduling.k8s.io/v1": ["priorityclasses"]}
    api.denied.add(path)
    assert not found.is_known(PRIORITY_CLASSES)
    await settle()
    assert sorted(known) == ["podgroups.scheduling.x-k8s.io", "priorityclasses.scheduling.k8s.io"]
    assert found.is_known(COSCHEDULING)
    assert not found.is_known(PRIORITY_CLASSES)
    known.clear()
    api.denied.clear()
    await time.elapse(30)
    assert known == ["priorityclasses.scheduling.k8s.io"]
    assert found.is_known(PRIORITY_CLASSES)
