"""Short descriptions of trees of queues, and random ones."""

from hypothesis import strategies as st

from firmament_py.model.queues import Flavor, QueueDefinition, QueueTree, Quota

FLAVORS = ("red", "blue")
RESOURCES = ("cpu", "gpu")


def queue_id(name):
    """A number for a name: the same in each run."""
    return int.from_bytes(name.encode()[:8].ljust(8, b"\0")[::-1], "big") + len(name) if name else 0


def quota(nominal=0, borrowing_limit=None, lending_limit=None, limit=None, *, on="red/cpu", weight=None):
    flavor, _, resource = on.partition("/")
    return Quota(flavor, resource, nominal, borrowing_limit, lending_limit, limit, weight)


def queue(name, parent="", *quotas, **fields):
    return QueueDefinition(queue_id(name), name, queue_id(parent), quotas, **fields)


def tree(*queues, flavors=None, **fields):
    names = flavors or dict.fromkeys([*FLAVORS, *(quota.flavor for queue in queues for quota in queue.quotas)])
    return QueueTree(queues, tuple(Flavor(name) for name in names), **fields)


amounts = st.integers(0, 30)
limits = st.one_of(st.none(), amounts)


@st.composite
def quotas(draw, *, limit=False):
    """Quotas of some flavors and resources."""
    columns = draw(st.lists(st.sampled_from([f"{f}/{r}" for f in FLAVORS for r in RESOURCES]), unique=True))
    return tuple(
        quota(nominal := draw(amounts), draw(limits), draw(limits), nominal + draw(amounts) if limit else None, on=on)
        for on in columns
    )


@st.composite
def trees(draw, /, *, limit=False, queues_at_most=9, **fields):
    """Trees and forests; parents come before or after their children."""
    count = draw(st.integers(1, queues_at_most))
    queues = []
    for number in range(count):
        parent = draw(st.one_of(st.just(-1), st.integers(max(0, number - 4), number - 1))) if number else -1
        name = "" if parent < 0 else f"q{parent}"
        weight = draw(st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.0]))
        queues.append(queue(f"q{number}", name, *draw(quotas(limit=limit)), weight=weight))
    return tree(*draw(st.permutations(queues)), **fields)
