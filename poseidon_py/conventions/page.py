"""docs/conventions.md, generated from the table: python -m poseidon_py.conventions.page > docs/conventions.md"""

from collections.abc import Iterator

from poseidon_py.conventions.table import CONVENTIONS
from poseidon_py.conventions.verdicts import ConventionTable, Effect, KindTable, Rows, Verdict

_HEAD = """# Conventions: what becomes of each field, label and annotation

This page is generated from `poseidon_py/conventions/`: `python -m poseidon_py.conventions.page > docs/conventions.md`.
Tests compare the table with the schemas of the conventions, and try each row. There are five kinds of rows:

| | |
| --- | --- |
| honoured | Changing it alone changes what the scheduler decides. |
| reported | It has no effect. An event `NotHonoured` on the object says what follows. |
| refused | It decides where, when or whether pods run, and cannot be kept: the pods, or the queue, wait, and say why. |
| delegated | Another component reads it, such as the kind's own controller. |
| not needed | The scheduler does not read it, and pods run as if it did, for the reason given. |

A field that the table lacks is reported as unknown, as are annotations and labels with the prefix `poseidon.io/`.
"""


def page() -> str:
    return "\n".join([_HEAD, *(line for each in CONVENTIONS for line in _section(each))]) + "\n"


def _section(convention: ConventionTable) -> Iterator[str]:
    yield f"## {convention.title}\n"
    for kind in convention.kinds:
        yield from _kind(kind)
    for title, rows in (
        ("Annotations of pods", convention.pods.annotations),
        ("Labels of pods", convention.pods.labels),
        ("Annotations of other objects", convention.objects.annotations),
        ("Labels of other objects", convention.objects.labels),
    ):
        if rows:
            yield from _table(title, "key", rows)


def _kind(kind: KindTable) -> Iterator[str]:
    versions = ", ".join(kind.versions)
    title = f"{kind.title}, {versions}" if versions else kind.title
    if kind.unread:
        yield f"### {title}\n\nNot read: {kind.unread}.\n"
    else:
        yield from _table(title, "field", kind.fields)


def _table(title: str, column: str, rows: Rows) -> Iterator[str]:
    yield f"### {title}\n\n| {column} | | |\n| --- | --- | --- |"
    for names, verdict in _alike(rows):
        yield f"| {', '.join(f'`{name}`' for name in names)} | {verdict.effect.value} | {_text(verdict)} |"
    yield ""


def _alike(rows: Rows) -> Iterator[tuple[list[str], Verdict]]:
    """Neighbours with one verdict share a line."""
    found: list[tuple[list[str], Verdict]] = []
    for name, verdict in rows.items():
        if found and found[-1][1] == verdict and verdict.effect is not Effect.HONOURED:
            found[-1][0].append(name)
        else:
            found.append(([name], verdict))
    yield from found


def _text(verdict: Verdict) -> str:
    neutral = [str(each) for each in verdict.neutral if each != ""]
    parts = [
        verdict.text,
        f"value: {verdict.form.text}" if verdict.form else "",
        f"nothing is said beside `{verdict.unless[0]}: {verdict.unless[1]}`" if verdict.unless[0] else "",
        f"nothing is said of {' and '.join(neutral)}" if neutral and not verdict.unless[0] else "",
    ]
    return "; ".join(filter(None, parts))


if __name__ == "__main__":
    print(page(), end="")
