"""Hypothesis strategies for demands and nodes: few keys and values, so that they meet."""

from hypothesis import strategies as st

from firmament_py.model.constraints import NodeDemand, Operator, Requirement, Taint, Term, Toleration

KEYS = st.sampled_from(["zone", "disk", "gen"])
VALUES = st.sampled_from(["a", "b", "", "1", "2", "10", "-1", "+2", "x1"])
EFFECTS = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
NAMES = st.sampled_from(["n0", "n1", "n2"])

labels = st.dictionaries(KEYS, VALUES, max_size=3)
taints = st.lists(st.builds(Taint, KEYS, VALUES, EFFECTS), max_size=2, unique=True).map(tuple)
tolerations = st.lists(
    st.builds(
        Toleration,
        st.one_of(KEYS, st.just("")),
        st.sampled_from(["Equal", "Exists", ""]),
        VALUES,
        st.one_of(EFFECTS, st.just("")),
    ),
    max_size=2,
).map(tuple)


def requirements(keys, values):
    return st.one_of(
        st.builds(
            Requirement,
            keys,
            st.sampled_from([Operator.IN, Operator.NOT_IN]),
            st.lists(values, max_size=3).map(tuple),
        ),
        st.builds(Requirement, keys, st.sampled_from([Operator.EXISTS, Operator.DOES_NOT_EXIST])),
        st.builds(
            Requirement,
            keys,
            st.sampled_from([Operator.GT, Operator.LT]),
            st.sampled_from([("0",), ("2",), ("-5",), ("10",), ("x1",), (), ("1", "2"), ("9" * 30,)]),
        ),
    )


on_labels = requirements(KEYS, VALUES)
on_fields = requirements(st.sampled_from(["metadata.name", "metadata.other"]), NAMES)
terms = st.builds(Term, st.lists(on_labels, max_size=2).map(tuple), st.lists(on_fields, max_size=1).map(tuple))
demands = st.builds(
    NodeDemand,
    st.lists(on_labels, max_size=2).map(tuple),
    st.lists(st.lists(terms, max_size=2).map(tuple), max_size=2).map(tuple),
    tolerations,
)
