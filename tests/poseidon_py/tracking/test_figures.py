"""Statistics that are added up."""

import math

from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.tracking.figures import BUCKETS, Durations, Figures, as_json, merged
from tests.effort import examples

SECONDS = st.floats(0, 5e6)


def durations(values):
    found = Durations()
    for value in values:
        found.add(value)
    return found


@examples(100)
@given(one=st.lists(SECONDS), other=st.lists(SECONDS))
def test_histograms_of_parts_are_the_histogram_of_all(one, other):
    parts, whole = durations(one), durations([*one, *other])
    parts.merge(durations(other))
    assert (parts.count, parts.counts, parts.largest) == (whole.count, whole.counts, whole.largest)
    assert math.isclose(parts.sum, whole.sum)


@examples(200)
@given(values=st.lists(SECONDS, min_size=1), share=st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]))
def test_a_quantile_is_at_most_a_factor_too_large(values, share):
    exact = sorted(values)[math.ceil(share * len(values)) - 1]
    found = durations(values).quantile(share)
    assert exact <= found * (1 + 1e-9)
    assert found <= max(exact * math.sqrt(2) * (1 + 1e-9), 1.0) or exact > BUCKETS[-1]


def test_without_durations_there_is_no_quantile():
    assert (Durations().quantile(0.5), Durations().mean) == (None, None)


def test_figures_as_json():
    one, other = Figures(), Figures()
    one.created, one.retries, one.run = 2, 1, 1.5
    one.waits.add(3.0)
    one.occupied(10, (("cpu", 0.5),))
    other.created, other.lost = 1, 4.0
    other.occupied(1, (("cpu", 1.0), ("nvidia.com/gpu", 2.0)))
    body = as_json(merged([one, other]))
    assert (body["created"], body["retries"], body["run_seconds"], body["lost_seconds"]) == (3, 1, 1.5, 4.0)
    assert body["resource_seconds"] == {"cpu": 6.0, "nvidia.com/gpu": 2.0}
    assert body["waits"] == {"count": 1, "mean": 3.0, "p50": 3.0, "p99": 3.0, "longest": 3.0, "buckets": {"4": 1}}
    assert (one.created, other.created) == (2, 1), "the parts are as they were"
