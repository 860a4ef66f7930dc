"""Columns say what fits: exactly for simple kinds, and never too little for others."""

from collections import Counter
from itertools import combinations_with_replacement

from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.devices.allocator import allocate
from poseidon_py.devices.book import DeviceBook
from poseidon_py.devices.columns import Kind, is_simple
from poseidon_py.devices.holdings import Held
from poseidon_py.devices.inventory import DeviceId
from tests.effort import examples
from tests.poseidon_py.devices.offers import DRIVER, claim, device, one_of, option, request, slice_of

MODEL = f'device.attributes["{DRIVER}"].model'
A, B, LARGE = f'{MODEL} == "a"', f'{MODEL} == "b"', f'device.attributes["{DRIVER}"].memory >= 2'


def book_of(*devices, counters=None):
    book = DeviceBook()
    book.put_slice(slice_of(*devices, of=2 if counters else 1))
    if counters:
        book.put_slice(slice_of(name="counters", of=2, counters=counters))
    return book


def count(book, *kinds):
    for kind in kinds:
        book.count_sets(kind)
    return [book.amounts(kind) for kind in kinds]


def fits_in_columns(book, kinds):
    amounts = count(book, *kinds)
    total: Counter[str] = Counter()
    for each in amounts:
        total.update(each)
    offered = Counter(book.free("n", {}))
    for kind in set(kinds):
        if kind.column in total:
            offered[kind.column] = book.copies("n", {}, kind, kind.claims)
    return all(amount <= offered[column] for column, amount in total.items())


def fits(book, kinds):
    return book.allocate("n", {}, [each for kind in kinds for each in kind.claims]) is not None


def of(*requests, **conditions):
    return Kind((claim(*requests, **conditions),))


# -- kinds that are counted by sets alone -----------------------------------------------------------------------------


def test_nested_and_disjoint_sets():
    book = book_of(*(device(f"d{at}", model="ab"[at % 2], memory=at) for at in range(5)))
    any_one, two_a = of(request()), of(request(A, number=2))
    assert count(book, any_one, two_a) == [
        {"devices::" + name_of(book, ()): 1},
        {"devices::" + name_of(book, ()): 2, "devices::" + name_of(book, (A,)): 2},
    ]
    assert fits_in_columns(book, [two_a, any_one, any_one, any_one])
    assert not fits_in_columns(book, [two_a, two_a])
    assert not fits_in_columns(book, [any_one] * 6)


def name_of(book, selectors):
    (column,) = [book.name_of(each) for each in book.known.number if each.selectors == selectors]
    return column.removeprefix("devices::")


@st.composite
def worlds(draw):
    """A node, what is in use there, and kinds."""
    shapes = st.tuples(st.sampled_from("ab"), st.integers(1, 2))
    listed = draw(st.lists(shapes, min_size=1, max_size=5))
    book = book_of(*(device(f"d{at}", model=model, memory=memory) for at, (model, memory) in enumerate(listed)))
    used = draw(st.sets(st.sampled_from(range(len(listed)))))
    book.hold("other", [Held(DeviceId(DRIVER, "pool", f"d{at}"), None) for at in sorted(used)])
    selectors = st.sampled_from([(), (A,), (B,), (A, LARGE), (LARGE,)])
    kinds = []
    for at in range(draw(st.integers(1, 3))):
        asks = draw(st.lists(st.tuples(selectors, st.integers(1, 2)), min_size=1, max_size=2))
        kinds.append(of(*(request(*which, name=f"k{at}r{n}", number=number) for n, (which, number) in enumerate(asks))))
    return book, kinds


@given(worlds())
@examples(150)
def test_whole_devices_fit_exactly_as_their_columns_say(world):
    """All groups of up to three pods of simple kinds; of other kinds, columns never refuse what fits."""
    book, kinds = world
    count(book, *kinds)
    for size in (1, 2, 3):
        for group in combinations_with_replacement(kinds, size):
            if all(is_simple(kind, book.known) for kind in group):
                assert fits_in_columns(book, group) == fits(book, group)
            elif fits(book, group):
                assert fits_in_columns(book, group)


# -- kinds with a column of their own ---------------------------------------------------------------------------------


@st.composite
def odd_worlds(draw):
    """A node with partitions and shared devices, and one kind with constraints or alternatives."""
    listed = []
    for at in range(draw(st.integers(1, 5))):
        given = {"model": draw(st.sampled_from("ab")), "memory": draw(st.integers(1, 2))}
        match draw(st.sampled_from(["whole", "part", "shared"])):
            case "part":
                given["uses"] = {"x": draw(st.integers(1, 3))}
            case "shared":
                given |= {"shareable": True, "capacity": {"bandwidth": 4}}
        listed.append(device(f"d{at}", **given))
    book = book_of(*listed, counters={"x": draw(st.integers(1, 5))})
    options = st.builds(
        lambda which, number, taken: option(*which, number=number, **taken),
        st.sampled_from([(), (A,), (LARGE,)]),
        st.sampled_from([0, 1, 1, 2]),
        st.sampled_from([{}, {}, {"bandwidth": 2}]),
    )
    asks = [one_of(f"r{at}", *draw(st.lists(options, min_size=1, max_size=2))) for at in range(draw(st.integers(1, 2)))]
    return book, of(*asks, same=draw(st.sampled_from(["", "memory"])))


@given(odd_worlds())
@examples(100)
def test_a_column_of_its_own_counts_the_copies_of_a_kind(world):
    book, kind = world
    (amounts,) = count(book, kind)
    if kind.column not in amounts:
        return
    copies = book.copies("n", {}, kind, kind.claims)
    assert (copies == 0) == (not fits(book, [kind]))
    if copies < 64:
        assert not fits(book, [kind] * (copies + 1))
    if copies:
        assert fits(book, [kind] * copies)
        assert fits_in_columns(book, [kind] * copies)


def test_a_kind_that_did_not_get_devices_is_counted_by_itself_from_then_on():
    book = book_of(device("d0", model="a"))
    kind = of(request(A))
    assert kind.column not in count(book, kind)[0]
    book.refused.add(kind)
    assert count(book, kind)[0][kind.column] == 1


def test_an_error_of_a_selector_excludes_the_node():
    book = book_of(device("d0", model="a"), device("d1"))
    kind = of(request(A))
    book.refused.add(kind)
    count(book, kind)
    assert book.copies("n", {}, kind, kind.claims) == 0


def test_what_leaves_makes_room_again():
    book = book_of(device("d0", model="a"))
    kind = of(request(A))
    count(book, kind)
    before = book.free("n", {})
    whole = [Held(DeviceId(DRIVER, "pool", "d0"), None)]
    assert book.hold("claim", whole) == {"n"}
    assert not any(book.free("n", {}).values())
    assert book.hold("claim", whole) == set()
    assert book.hold("claim", ()) == {"n"}
    assert book.free("n", {}) == before


def test_allocation_is_that_of_the_search():
    """The book adds what it knows: use, counters of the whole pool, ranks."""
    book = book_of(device("d0", model="a", uses={"x": 1}), device("d1", model="a", uses={"x": 1}), counters={"x": 1})
    kind = of(request(A))
    count(book, kind)
    (grants,) = book.allocate("n", {}, kind.claims)
    book.hold("claim", [Held(grants[0].device.id, None)])
    assert book.allocate("n", {}, kind.claims) is None
    node = book.on("n", {})
    assert allocate(kind.claims, node, book.holdings.use, book.known.suits) is None
