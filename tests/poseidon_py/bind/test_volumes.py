"""Between placement and bind: volumes are bound or provisioned, for the version of the decision, and awaited."""

import asyncio
import copy
from collections.abc import Callable

import msgspec
import pytest

from poseidon_py.bind.volumes import VolumeBinder
from poseidon_py.feed.update_rows import describe_pod
from poseidon_py.kube.client import ConflictError
from poseidon_py.state.volumes.cache import SELECTED_NODE
from poseidon_py.state.volumes.gate import VolumeError
from tests.poseidon_py.bind.test_binder import Bench
from tests.poseidon_py.builders import pod
from tests.poseidon_py.settling import settle
from tests.poseidon_py.state.test_volumes import admits, claim, volume, waiting_class

SPEC = {"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}


class FakePatches:
    """Answers with the object as patched; `fault` is raised instead, once."""

    def __init__(self, *objects) -> None:
        self.objects = objects
        self.asked = 0
        self.patches: list[tuple[str, dict]] = []
        self.fault: Exception | None = None
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens between a write and its answer."""

    async def merge(self, path, patch):
        self.asked += 1
        await asyncio.sleep(0)
        self.meanwhile()
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        self.patches.append((path, patch))
        name = path.rsplit("/", 1)[1]
        there = next(o for o in self.objects if o.metadata.name == name)
        body = copy.deepcopy(
            msgspec.to_builtins(there, enc_hook=lambda raw: msgspec.json.decode(bytes(raw) or b"null"))
        )
        body["metadata"]["resourceVersion"] = "2"
        body["metadata"].setdefault("annotations", None)
        body["metadata"]["annotations"] = {
            **(body["metadata"]["annotations"] or {}),
            **patch["metadata"].get("annotations", {}),
        }
        body["spec"].update(patch.get("spec", {}))
        return msgspec.json.encode(body)


class World(Bench):
    """A rig with volumes; the pod `a` has claim `c`."""

    def __init__(self, *volumes, provisioner="kubernetes.io/no-provisioner", timeout=60.0) -> None:
        super().__init__()
        self.storage = self.store.storage
        self.storage.ready = True
        self.storage.put_class(waiting_class(provisioner=provisioner))
        for one in volumes:
            self.storage.put_volume(one)
        self.storage.put_claim(claim("c"))
        self.api = FakePatches(*volumes, claim("c"))
        gate = self.store.volumes
        self.gone: set[str] = set()
        self.volume_binder = VolumeBinder(
            self.api, self.storage, gate, self._labels_of, timeout, leads=lambda: self.leads
        )

    def prepare(self, known, node):
        return self.volume_binder.prepare(known, node)

    def _labels_of(self, node):
        return None if node in self.gone else {"host": node}

    def place(self, name="a", on="n", **fields):
        self.kube.put(name)
        self.store.observe_pod(pod(name, spec=SPEC, **fields))
        known = self.store.pods[f"uid-{name}"]
        describe_pod(self.store, known)
        self.binder.bind(known, on, self.store.id_of_node(on))
        return known

    def bound_by_controller(self, to="v"):
        self.storage.put_volume(volume(to, on=["n"], claimRef={"namespace": "default", "name": "c", "uid": "uid-c"}))
        self.storage.put_claim(claim("c", bound_to=to, selected="n"))


async def test_a_volume_is_bound_and_then_the_pod():
    async with World(volume("big", on=["n"], size="9Gi"), volume("v", on=["n"])) as world:
        world.place()
        await settle()
        [(path, patch)] = world.api.patches
        assert path == "/api/v1/persistentvolumes/v"  # the smallest
        assert patch["metadata"]["resourceVersion"] == "1"
        assert patch["metadata"]["annotations"] == {"pv.kubernetes.io/bound-by-controller": "yes"}
        assert {key: patch["spec"]["claimRef"][key] for key in ("namespace", "name", "uid")} == {
            "namespace": "default",
            "name": "c",
            "uid": "uid-c",
        }
        assert world.bound == []
        assert world.storage.volumes["v"].spec.claim.uid == "uid-c"  # no other claim is given it
        assert not world.slots.busy  # it waits for the controller, and for no slot
        world.bound_by_controller()
        await settle()
        assert world.bound == [("a", "n")]
        assert world.storage.reserved == {}


async def test_a_volume_is_provisioned_and_then_the_pod_is_bound():
    async with World(provisioner="p") as world:
        world.place()
        await settle()
        [(path, patch)] = world.api.patches
        assert path == "/api/v1/namespaces/default/persistentvolumeclaims/c"
        assert patch["metadata"]["annotations"] == {SELECTED_NODE: "n"}
        world.bound_by_controller()
        await settle()
        assert world.bound == [("a", "n")]


@pytest.mark.parametrize("provisioned", [True, False])
async def test_the_watch_may_be_ahead_of_the_answer_to_a_write(provisioned):
    """Volume and claim are bound before the answer arrives, which is older: the pod is bound, and nothing is undone."""
    volumes = () if provisioned else (volume("v", on=["n"]),)
    async with World(*volumes, provisioner="p" if provisioned else "kubernetes.io/no-provisioner") as world:
        later = (
            claim("c", bound_to="v", selected="n"),
            volume("v", on=["n"], claimRef={"namespace": "default", "name": "c", "uid": "uid-c"}),
        )
        for item in later:
            item.metadata.resource_version = "3"
        world.api.meanwhile = lambda: (world.storage.put_claim(later[0]), world.storage.put_volume(later[1]))
        world.place()
        await settle()
        assert world.bound == [("a", "n")]
        assert (world.storage.claims["default", "c"], world.storage.volumes["v"]) == later


async def test_the_answer_to_a_write_does_not_bring_back_what_is_deleted():
    async with World(volume("v", on=["n"])) as world:
        world.api.meanwhile = lambda: (world.storage.drop_volume("v"), world.storage.drop_claim(("default", "c")))
        world.place()
        await settle()
        assert (world.bound, world.storage.volumes, world.storage.claims) == ([], {}, {})


async def test_bound_volumes_need_no_request():
    async with World() as world:
        world.bound_by_controller()
        world.place()
        await settle()
        assert (world.bound, world.api.patches) == ([("a", "n")], [])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda world: world.storage.put_claim(claim("c")), "provisioning failed"),
        (lambda world: world.storage.drop_claim(("default", "c")), "was deleted"),
        (
            lambda world: (
                world.storage.put_volume(volume("v", on=["m"])),
                world.storage.put_claim(claim("c", bound_to="v", selected="n")),
            ),
            "node affinity doesn't match",
        ),
    ],
    ids=["annotation taken back", "claim deleted", "made elsewhere"],
)
async def test_a_placement_whose_volume_is_unavailable_is_given_back(change, words):
    async with World(provisioner="p") as world:
        world.place()
        await settle()
        change(world)
        await settle()
        assert world.bound == []
        [(name, _, not_before)] = world.rejected
        assert (name, not_before > 0) == ("a", True)
        assert words in world.failed[0]


@pytest.mark.parametrize("mode", ["ReadWriteOncePod", "ReadWriteOnce"])
async def test_of_two_that_one_round_places_with_a_claim_for_one_only_one_is_bound(mode):
    """Each may have been sent before the other was known to use the claim, or while it was blocked."""
    async with World(volume("v", on=["n"])) as world:
        world.storage.put_volume(volume("v", on=["n"], claimRef={"namespace": "default", "name": "c", "uid": "uid-c"}))
        world.storage.put_claim(claim("c", bound_to="v", accessModes=[mode]))
        for name in ("a", "b"):
            world.place(name)
        await settle()
        alone = mode == "ReadWriteOncePod"
        assert world.bound == [("a", "n")] + [("b", "n")] * (not alone)
        assert [name for name, *_ in world.rejected] == ["b"] * alone


async def test_a_volume_that_is_shared_goes_where_most_pods_of_a_round_were_placed():
    """All of them have to be where it is: one on node m, and two on node n, of which the volume is made for n."""
    async with World(provisioner="p") as world:
        for name, node in (("a", "m"), ("b", "n"), ("d", "n")):
            world.place(name, on=node)
        await settle()
        assert {patch["metadata"]["annotations"][SELECTED_NODE] for _, patch in world.api.patches} == {"n"}
        assert [name for name, *_ in world.rejected] == ["a"]
        world.bound_by_controller()
        await settle()
        assert sorted(world.bound) == [("b", "n"), ("d", "n")]


@pytest.mark.parametrize("bound", [False, True])
async def test_a_pod_is_not_bound_where_a_shared_volume_is_not(bound):
    """It was placed while node n was being selected for another pod with the same claim, or the volume bound there."""
    async with World(provisioner="p") as world:
        world.storage.put_claim(claim("c", selected="n"))
        if bound:
            world.bound_by_controller()
        world.place("a", on="m")
        await settle()
        assert (world.bound, world.api.patches) == ([], [])
        assert [name for name, *_ in world.rejected] == ["a"]
        assert world.storage.claims["default", "c"].metadata.uid  # nothing was written


async def test_another_claim_got_the_volume_first():
    async with World(volume("v", on=["n"])) as world:
        world.api.fault = ConflictError(409, "Conflict", "the object has been modified")
        known = world.place()
        await settle()
        assert (len(world.rejected), world.bound, known.assumed) == (1, [], "")
        assert world.storage.reserved == {}


async def test_patience_ends():
    async with World(provisioner="p", timeout=0.01) as world:
        world.place()
        async with asyncio.timeout(5):
            while not world.rejected:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        assert "deadline exceeded" in world.failed[0]


async def test_a_node_without_the_volume_is_refused_at_once_and_not_tried_again():
    async with World(volume("v", on=["m"])) as world:
        known = world.place(on="n")
        await settle()
        assert (len(world.rejected), known.assumed, world.failed) == (1, "", [])  # elsewhere there may be more
        demands = world.store.volumes.demands_of(known)
        assert len(demands.further) == 2  # the nodes of volumes, and not this one
        world.storage.put_volume(volume("w", on=["n"]))
        assert len(world.store.volumes.demands_of(known).further) == 1


async def test_a_pod_is_not_bound_to_a_node_deleted_during_provisioning():
    async with World(volume("v", on=["n"])) as world:
        known = world.place(on="n")
        await settle()
        assert known.assumed
        world.gone.add("n")  # an autoscaler saw it empty
        world.bound_by_controller()
        await settle()
        assert (world.bound, known.assumed) == ([], "")
        assert "node n is gone" in world.failed[0]


async def test_a_placement_that_is_given_back_at_once_writes_nothing_and_keeps_nothing():
    async with World(volume("v", on=["n"])) as world:
        world.place(on="n")
        world.binder.withdraw(["uid-a"], "")
        await settle()
        assert (world.api.asked, world.storage.reserved) == (0, {})
        assert await world.binder.drain(0.1)


async def test_a_pod_deleted_during_preparation_releases_everything():
    async with World(volume("v", on=["n"])) as world:
        world.place()
        await settle()
        world.store.remove_pod("uid-a")
        await settle()
        assert (world.rejected, world.bound, world.storage.reserved) == ([], [], {})
        assert await world.binder.drain(1.0)


async def test_a_deposed_leader_stops_preparing():
    async with World(provisioner="p") as world:
        known = world.place()
        await settle()
        world.binder.halt()
        await settle()
        assert (known.assumed, len(world.rejected)) == ("", 1)
        world.bound_by_controller()
        await settle()
        assert world.bound == []


@pytest.mark.parametrize("objects", [(volume("v", on=["n"]),), ()], ids=["given", "asked for"])
async def test_a_leader_with_an_expired_lease_updates_no_volumes(objects):
    async with World(*objects, provisioner="p" if not objects else "kubernetes.io/no-provisioner") as world:
        world.leads = False
        known = world.place()
        await settle()
        assert (world.api.asked, known.assumed, len(world.rejected), world.failed) == (0, "", 1, [])
        assert world.storage.reserved == {}


def test_a_claim_that_was_deleted_before():
    world = World()
    world.store.observe_pod(pod("a", spec=SPEC))
    known = world.store.pods["uid-a"]
    describe_pod(world.store, known)
    world.storage.drop_claim(("default", "c"))
    with pytest.raises(VolumeError):
        world.store.volumes.reserve(known, "n", {})


async def test_a_node_without_room_for_a_new_volume_comes_last_from_then_on():
    """kube-scheduler tries any of the nodes that suit the pod equally; here it was always the same one. It is tried
    again once no other takes the pod."""
    async with World(provisioner="p") as world:
        known = world.place()
        await settle()
        world.storage.put_claim(claim("c"))  # the provisioner takes the selected node back
        await settle()
        assert [(name, node_id) for name, node_id, _ in world.rejected] == [("a", world.store.id_of_node("n"))]
        world.storage.put_claim(claim("c"))  # further changes of the claim, such as by the provisioner, do not matter

        def excluded():
            found = world.store.volumes.demands_of(known)
            return [name for name in ("n", "m") if admits(found, {"host": name}, name)]

        assert excluded() == ["n"]
        world.store.volumes.fits_nowhere(known)
        assert known.dirty
        assert excluded() == []
