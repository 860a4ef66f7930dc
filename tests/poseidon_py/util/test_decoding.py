"""Malformed JSON: one error for all failures, what can be salvaged, lines of bounded length."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.kube import salvage
from poseidon_py.kube.lines import Lines
from poseidon_py.util.decoding import DEPTH, Decoder, MalformedError, decode_json, is_whole, readable
from tests.poseidon_py.kube.mutations import cut

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-99, 99), st.text(max_size=5)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=15,
)


class Named(msgspec.Struct):
    name: str


@pytest.mark.parametrize("data", [b"", b"{", b'{"name": 5}', b'{"name": "\xff"}', b'{"x": ' + b"[" * 5000, "\udcff"])
def test_every_failure_is_one_error_that_names_the_place(data):
    decoder: Decoder[Named] = Decoder(Named, "the name")
    with pytest.raises(MalformedError, match=r"^the name: .+"):
        decoder.decode(data)
    with pytest.raises(MalformedError, match=r"^the name: .+"):
        decode_json(data, Named, "the name")


def test_lines_fail_together():
    decoder: Decoder[Named] = Decoder(Named, "the name")
    assert decoder.decode_lines(b'{"name": "a"}\n{"name": "b"}\n') == [Named("a"), Named("b")]
    with pytest.raises(MalformedError, match=r"^the name: "):
        decoder.decode_lines(b'{"name": "a"}\n{"name": "\xff"}\n')


@given(JSON)
def test_readable_bytes_are_unchanged(value):
    data = json.dumps(value, ensure_ascii=False).encode()
    assert readable(data) == data
    assert is_whole(data)


@given(JSON, JSON, st.sampled_from([b"[%b]", b'{"a]":%b}', b'["}", %b, "\\"["]']), st.integers(DEPTH, 200))
def test_only_values_nested_too_deeply_are_replaced(before, after, shell, depth):
    deep = b"1"
    for _ in range(depth):
        deep = shell % deep
    data = b'{"before": %b, "deep": %b, "after": %b}' % (json.dumps(before).encode(), deep, json.dumps(after).encode())
    cut_short = readable(data)
    found = json.loads(cut_short)
    assert (found["before"], found["after"]) == (before, after)
    assert not is_whole(cut_short)


@given(st.binary(max_size=200))
def test_anything_can_be_made_readable(data):
    readable(data).decode()


@pytest.mark.parametrize(
    ("data", "who"),
    [
        (b'{"metadata": {"name": "a", "namespace": "n", "uid": "u", "resourceVersion": "7"}}', ("a", "n", "u", "7")),
        (b'{"metadata": {"name": "a\xff", "uid": 5, "ownerReferences": 5}}', ("a\ufffd", "", "", "")),
        (b'{"metadata": {"name": "a", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}}", ("a", "", "", "")),
        (b'{"metadata": 5}', ("?", "", "", "")),
        (b"<html>", ("?", "", "", "")),
    ],
)
def test_the_object_of_a_malformed_document_is_identified(data, who):
    found = salvage.identity(data)
    assert (found.name, found.namespace, found.uid, found.resource_version) == who


@given(cut(st.lists(st.sampled_from([b"a", b"bb", b"\n"]), max_size=40).map(b"".join)), st.integers(1, 12))
def test_lines_are_complete_and_in_order_without_those_that_are_too_long(pieces, limit):
    lines, stream = Lines(limit), b"".join(pieces)
    found = [lines.feed(piece) for piece in pieces]
    assert all(part == b"" or part.endswith(b"\n") for part in found)
    got = b"".join(found).splitlines(keepends=True)
    whole = [line + b"\n" for line in stream.split(b"\n")[:-1]]
    others = iter(whole)
    assert all(line in others for line in got)  # none is made up, none is out of order
    remaining = [line for line in whole if len(line) <= limit + 1]
    assert [line for line in got if len(line) <= limit + 1] == remaining
    # a line is also taken if it is long but comes at once; one that is left out is counted
    assert lines.skipped >= len(whole) - len(got)
