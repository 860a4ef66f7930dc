"""Output of broken servers, proxies or webhooks: valid bytes with insertions, deletions and repetitions, cut
anywhere."""

import itertools
from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st


@st.composite
def mutated(draw: Any, seeds: Sequence[bytes], tokens: Sequence[bytes]) -> bytes:
    """One or two of `seeds` in a row, with up to four slices replaced, most often by one of `tokens`."""
    data = b"".join(draw(st.lists(st.sampled_from(seeds), min_size=1, max_size=2)))
    for _ in range(draw(st.integers(0, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 12)))
        put = draw(st.one_of(st.sampled_from(tokens), st.binary(max_size=8), st.just(data[start:end] * 2)))
        data = data[:start] + put + data[end:]
    return data


@st.composite
def cut(draw: Any, streams: st.SearchStrategy[bytes]) -> list[bytes]:
    """A stream in pieces of random lengths."""
    data = draw(streams)
    at = [0, *sorted(draw(st.lists(st.integers(0, len(data)), max_size=8))), len(data)]
    return [data[start:end] for start, end in itertools.pairwise(at) if start < end]
