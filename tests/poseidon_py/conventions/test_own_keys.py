"""The meanings of Poseidon's own annotations and labels: all of them, each where the pages explain it."""

import re

import pytest

from poseidon_py.conventions.own_keys import OWN_KEYS, Author
from poseidon_py.conventions.tables.own import OWN, PREFIX
from poseidon_py.conventions.verdicts import Effect
from tests.paths import ROOT

ROWS = {
    key.removeprefix(PREFIX): (verdict, is_label)
    for keys in (OWN.pods, OWN.objects)
    for rows, is_label in ((keys.annotations, False), (keys.labels, True))
    for key, verdict in rows.items()
}


def test_the_page_has_the_keys_of_the_table():
    names = [each.name for each in OWN_KEYS]
    assert len(names) == len(set(names))
    assert set(names) == set(ROWS)


def test_each_key_in_the_code_is_in_the_table():
    found = {
        name
        for path in (ROOT / "poseidon_py").rglob("*.py")
        for name in re.findall(rf'"{PREFIX}([a-z-]+)"', path.read_text())
    }
    assert found - set(ROWS) == set()


@pytest.mark.parametrize("key", OWN_KEYS, ids=lambda key: key.name)
def test_a_key(key):
    verdict, is_label = ROWS[key.name]
    assert "label" in key.of or not is_label
    assert (key.author is Author.USER) == (verdict.effect is Effect.HONOURED or "jobs run" in verdict.text)
    assert key.meaning.endswith(".")
    if key.page:
        assert f"{PREFIX}{key.name.rstrip('*')}" in (ROOT / "docs" / key.page).read_text()
