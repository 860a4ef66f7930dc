"""Names of other namespaces are taken out of texts, and what merely resembles them stays."""

import pytest

from poseidon_py.dashboard.scope import ALL, HIDDEN, Scope

SCOPE = Scope(frozenset({"red"}), {"red", "blue", "0"})


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("waits for blue/four", f"waits for {HIDDEN}"),
        ("waits for red/four.", "waits for red/four."),
        ("evicted for blue/four, as blue/five was", f"evicted for {HIDDEN}, as {HIDDEN} was"),
        ("0/5 nodes have nvidia.com/gpu", f"{HIDDEN} nodes have nvidia.com/gpu"),  # a namespace may be called 0
        ("poseidon.io/gang: green/x", "poseidon.io/gang: green/x"),
        ("https://blue/four", "https://blue/four"),
        ("", ""),
    ],
)
def test_texts(text, shown):
    assert SCOPE.text(text) == shown
    assert ALL.text(text) == text


def test_names():
    body = {"a": ["red/a", {"b": "blue/a"}], "c": 1, "d": None}
    assert SCOPE.texts(body) == {"a": ["red/a", {"b": HIDDEN}], "c": 1, "d": None}
    assert ALL.texts(body) is body
    assert (SCOPE.shows("red"), SCOPE.shows("blue"), ALL.shows("blue"), ALL.all, SCOPE.all) == (
        True, False, True, True, False,
    )  # fmt: skip
