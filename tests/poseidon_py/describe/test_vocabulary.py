"""Descriptions are made once for each key, and dropped when they are not in use."""

import pytest

from poseidon_py.describe.vocabulary import Vocabulary
from protos.gen import flow_pb2


def profile(ident):
    return flow_pb2.Profile(id=ident)


def test_each_key_is_described_once_and_equal_descriptions_share_an_id():
    vocabulary: Vocabulary[str, flow_pb2.Profile] = Vocabulary()
    assert vocabulary.id_of("a", lambda: profile(1)) == 1
    assert vocabulary.id_of("a", lambda: profile(2)) == 1
    assert vocabulary.id_of("a, spelled otherwise", lambda: profile(1)) == 1
    assert vocabulary.get(1) == profile(1)
    assert vocabulary.get(2) is None
    assert len(vocabulary) == 2


def test_unused_descriptions_are_dropped_and_made_again_on_use():
    vocabulary: Vocabulary[str, flow_pb2.Profile] = Vocabulary()
    vocabulary.id_of("a", lambda: profile(1))
    vocabulary.id_of("b", lambda: profile(2))
    vocabulary.keep({2})
    assert (vocabulary.get(1), vocabulary.get(2), len(vocabulary)) == (None, profile(2), 1)
    assert vocabulary.id_of("a", lambda: profile(3)) == 3


def test_an_empty_description_has_no_entry_and_an_error_is_no_description():
    vocabulary: Vocabulary[str, flow_pb2.Profile] = Vocabulary()
    assert vocabulary.id_of("nothing", lambda: profile(0)) == 0
    assert vocabulary.get(0) is None

    def fail():
        raise LookupError

    with pytest.raises(LookupError):
        vocabulary.id_of("bad", fail)
    assert vocabulary.id_of("bad", lambda: profile(4)) == 4
