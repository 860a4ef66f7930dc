"""The allocator finds a solution exactly when there is one: beside brute force, in small random inventories."""

from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.devices.allocator import DeviceUse, allocate
from poseidon_py.devices.device_requests import DeviceToleration
from tests.effort import examples
from tests.poseidon_py.devices.brute_force import as_found, is_solvable, is_valid
from tests.poseidon_py.devices.offers import claim, device, node_with, one_of, option, policy, request, suits, taint

TOLERATES = DeviceToleration("broken", "Exists", "", "")


# -- random inventories -----------------------------------------------------------------------------------------------

POLICIES = [
    None,
    policy(default="2"),
    policy(values=["2", "4"], default="2"),
    policy(minimum="1", maximum="4", step="3"),
]


@st.composite
def devices(draw):
    found = []
    for at in range(draw(st.integers(1, 5))):
        kind = draw(st.sampled_from(["whole", "whole", "part", "shared"]))
        given = {"model": draw(st.sampled_from("ab")), "numa": draw(st.integers(0, 1))}
        if draw(st.booleans()):
            given["rail"] = draw(st.sampled_from([["1"], ["1", "2"], ["2"]]))
        if draw(st.integers(0, 4)) == 0:
            given["taints"] = [taint(draw(st.sampled_from(["NoSchedule", "NoExecute", "None"])))]
        if kind == "part":
            given["uses"] = {draw(st.sampled_from("xy")): draw(st.integers(1, 3))}
        if kind == "shared":
            given |= {"shareable": True, "capacity": {"memory": ("6", draw(st.sampled_from(POLICIES)))}}
        elif draw(st.booleans()):
            given["capacity"] = {"memory": draw(st.sampled_from([2, 4]))}
        found.append(device(f"d{at}", **given))
    return node_with(*found, counters={"x": draw(st.integers(0, 4)), "y": draw(st.integers(1, 5))})


@st.composite
def options(draw):
    selectors = draw(st.sampled_from([(), (), ("model=a",), ("numa=1",), ("model=b", "numa=0")]))
    capacity = draw(st.sampled_from([{}, {}, {"memory": 2}, {"memory": 3}]))
    return option(
        *selectors,
        number=draw(st.sampled_from([0, 1, 1, 1, 2, 2, 3])),
        admin=draw(st.integers(0, 4)) == 0,
        tolerations=draw(st.sampled_from([(), (TOLERATES,)])),
        **capacity,
    )


@st.composite
def claims(draw):
    found = []
    for _ in range(draw(st.integers(1, 2))):
        asks = [
            one_of(f"r{at}", *draw(st.lists(options(), min_size=1, max_size=2)))
            for at in range(draw(st.integers(1, 2)))
        ]
        of = draw(st.sampled_from([(), ("r0",), ("r0/0", "r1")]))
        same, distinct = draw(st.sampled_from([("", ""), ("numa", ""), ("", "numa"), ("rail", ""), ("numa", "rail")]))
        found.append(claim(*asks, same=same, distinct=distinct, of=of))
    return found


@st.composite
def uses(draw, node):
    use = DeviceUse()
    for each in node.devices:
        if draw(st.integers(0, 3)) == 0:
            if each.shareable and draw(st.booleans()):
                use.shared[each.id] = {name: draw(st.integers(0, 6)) * 10**9 for name in each.capacity}
            else:
                use.whole.add(each.id)
    return use


@given(st.data())
@examples(300)
def test_a_solution_is_found_exactly_when_there_is_one(data):
    node, asked = data.draw(devices()), data.draw(claims())
    use = data.draw(uses(node))
    for rank in (None, lambda device: -device.id.name.count("3")):
        found = allocate(asked, node, use, suits, rank=rank)
        assert (found is not None) == is_solvable(asked, node, use)
        if found is not None:
            assert is_valid(asked, as_found(asked, found), node, use)


# -- administrative access --------------------------------------------------------------------------------------------


def solved(asked, *given, used=()):
    node = node_with(*(device(name, **facts) for name, facts in given))
    use = DeviceUse(whole={each.id for each in node.devices if each.id.name in used})
    found = allocate(asked, node, use, suits)
    assert (found is not None) == is_solvable(asked, node, use)
    assert found is None or is_valid(asked, as_found(asked, found), node, use)
    return found and [[grant.device.id.name for grant in grants] for grants in found]


def test_administrative_access_takes_a_device_in_use_where_the_claim_needs_the_free_one():
    one = claim(request(name="watch", admin=True), request(name="own"))
    assert solved([one], ("free", {}), ("used", {}), used=["used"]) == [["used", "free"]]


def test_administrative_access_takes_a_device_that_the_search_has_given_away():
    first = claim(request("numa=1"), request(admin=True, name="watch"))
    assert solved([claim(request(admin=True)), claim(request(admin=True)), first], ("a", {"numa": 1})) is None
    both = claim(request(name="watch", admin=True), request(name="own"))
    assert solved([both, both], ("a", {}), ("b", {})) == [["a", "b"], ["b", "a"]]


def test_what_failed_for_a_claim_that_has_a_device_itself_is_tried_where_another_claim_has_it():
    either = one_of("r", option("model=a"), option("model=b"))
    last = claim(one_of("r", option("model=a"), option("model=b")), request("model=b", name="watch", admin=True))
    assert solved([claim(either), last], ("a", {"model": "a"}), ("b", {"model": "b"})) == [["b"], ["a", "b"]]
