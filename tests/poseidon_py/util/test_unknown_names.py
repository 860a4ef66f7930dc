"""Fields that decoding would skip."""

import pytest
from msgspec import Raw, Struct, field

from poseidon_py.util.unknown_names import has_unknown_names


class Leaf(Struct):
    amount: int = 0


class Tree(Struct):
    name: str = field(default="", name="fullName")
    one: Leaf | None = None
    many: list[Leaf] | None = None
    by_name: dict[str, Leaf] = field(default_factory=dict, name="byName")
    free: dict[str, str] | None = None
    raw: Raw = field(default=Raw())


@pytest.mark.parametrize(
    ("data", "unknown"),
    [
        (b"{}", False),
        (b"null", False),
        (b'{"fullName": "x", "one": null, "many": [{"amount": 1}], "byName": {"a": {"amount": 1}}}', False),
        (b'{"name": "x"}', True),
        (b'{"one": {"count": 1}}', True),
        (b'{"many": [{"amount": 1}, {"count": 1}]}', True),
        (b'{"byName": {"a": {"count": 1}}}', True),
        (b'{"free": {"any": "name"}, "raw": {"any": {"name": 1}}}', False),
    ],
)
def test_names_at_any_depth(data, unknown):
    assert has_unknown_names(data, Tree) is unknown
