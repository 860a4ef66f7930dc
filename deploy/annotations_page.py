"""docs/annotations.md, from the table of Poseidon's own annotations and labels."""

from __future__ import annotations

from poseidon_py.conventions.own_keys import OWN_KEYS, Author, OwnKey
from poseidon_py.conventions.tables.own import PREFIX

_HEAD = """# Annotations and labels of Poseidon

<!-- Generated from poseidon_py/conventions/own_keys.py by `make deploy`. -->

All begin with `poseidon.io/`, and are annotations unless the second column says label. One that is not here is
reported with an event `NotHonoured`; an invalid value with `InvalidAnnotation` ([events.md](events.md)). Those of
Kubernetes, Kueue, Volcano, KAI and others are in [conventions.md](conventions.md).
"""
_TITLES = {
    Author.USER: "What you write",
    Author.POSEIDON: "What Poseidon writes",
    Author.SYNTHETIC: "What the synthetic cluster reads",
}


def annotations_page() -> str:
    lines = [_HEAD]
    for author, title in _TITLES.items():
        lines += [f"## {title}", "", f"| `{PREFIX}...` | on | value | meaning |", "| --- " * 4 + "|"]
        lines += [_row(each) for each in OWN_KEYS if each.author is author]
        lines.append("")
    return "\n".join(lines[:-1]) + "\n"


def _row(key: OwnKey) -> str:
    more = f" [More]({key.page})" if key.page else ""
    return f"| `{key.name}` | {key.of} | {key.values} | {key.meaning}{more} |"
