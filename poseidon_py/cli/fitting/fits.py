"""`poseidon fits`: whether the pods of a manifest would fit now, and where.

Exit codes: 0 they fit, 1 they do not, 2 there is no answer.
"""

import json
import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TextIO

import click

from poseidon_py.cli.ask import failing_with, question
from poseidon_py.cli.errors import fail
from poseidon_py.cli.reaching.routes import ask
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]
FITS, DOES_NOT_FIT, NO_ANSWER = 0, 1, 2


@click.command()
@click.argument("file", type=click.File(encoding="utf-8"))
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    help="Namespace of objects without one. Default: that of the context, else default.",
)
@click.option(
    "--minimum",
    type=click.IntRange(min=0),
    help="Pods that are needed together; 0: each is placed on its own. Default: as the manifest declares its gang.",
)
@click.option(
    "--topology", metavar="KEY", default="", help="Node label: all pods of the gang need nodes with the same value."
)
@click.option("--priority", type=int, help="Priority of pods that have none.")
@click.option("--with-preemption", is_flag=True, help="Count nodes that pods of lower priority would be evicted from.")
@question
def fits(
    file: TextIO,
    namespace: str | None,
    minimum: int | None,
    topology: str,
    priority: int | None,
    with_preemption: bool,
    selection: Selection,
    as_json: bool,
) -> None:
    """Show whether the pods of a manifest would fit now, and on which nodes.

    FILE is what `kubectl apply -f` takes; - is the standard input. Nothing is created.

    Exit codes: 0 they fit, 1 they do not, 2 there is no answer.
    """
    objects, problems = objects_of(file)
    body = {
        "objects": objects,
        "namespace": namespace or selection.namespace,
        "minimum": minimum,
        "topology": topology,
        "priority": priority,
        "preempt": with_preemption,
    }
    found = answered(body, problems, selection)
    show(found, print_fit, as_json=as_json)
    sys.exit(FITS if found["fits"] else DOES_NOT_FIT)


def answered(body: Json, problems: list[str], selection: Selection) -> Json:
    """The answer to a question. `problems`: of its manifest, which are among the notes of the answer. Without one, the
    process ends with its error, and NO_ANSWER."""
    try:
        encoded = json.dumps(body).encode()
    except (TypeError, ValueError) as error:  # a date, a set
        fail(f"the manifest has a value that is not JSON: {error}; quote it", NO_ANSWER)
    with failing_with(NO_ANSWER):
        found = ask(selection.route(), "/fits", method="POST", body=encoded, timeout=120.0)
    return found | {"notes": problems + found["notes"]}


def show(found: Json, in_words: Callable[[Json, "Console"], None], *, as_json: bool) -> None:
    """Print an answer."""
    if as_json:
        click.echo(json.dumps(found, indent=2))
        return
    from poseidon_py.util.terminal import new_console

    in_words(found, new_console())


def objects_of(file: TextIO) -> tuple[list[Any], list[str]]:
    """The documents of a YAML or JSON file, and why some of them cannot be read. Like kubectl, a line that begins with
    --- separates them, so that one of them does not spoil the others."""
    import yaml

    found, problems = list[Any](), list[str]()
    for number, text in enumerate(re.split(r"^---(?=\s)", file.read(), flags=re.MULTILINE), 1):
        try:
            found += yaml.safe_load_all(text)
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            problems.append(f"document {number} of {file.name} is not YAML: {' '.join(str(error).split())}")
    if problems and not any(each is not None for each in found):
        fail(problems[0], NO_ANSWER)
    return found, [f"left out: {problem}" for problem in problems]


def print_fit(found: Json, console: "Console") -> None:
    from rich.markup import escape

    from poseidon_py.util.terminal import print_rows

    console.print(verdict(found), highlight=False, markup=False)
    if found["places"]:
        rows = [
            (
                each["workload"],
                escape(each["node"]),
                str(each["count"]),
                "after evictions" if each["after_evictions"] else "now",
            )
            for each in found["places"]
        ]
        print_rows(console, ("workload", "node", "pods", "when"), rows, right=("pods",))
    for each in found["waiting"]:
        pods = "1 pod" if each["count"] == 1 else f"{each['count']} pods"
        console.print(f"{each['workload']}: {pods} would wait: {each['message']}", highlight=False, markup=False)
    if found["victims"]:
        console.print(f"evicts {', '.join(found['victims'])}", highlight=False, markup=False)
    for note in found["notes"]:
        console.print(f"note: {note}", highlight=False, markup=False)


def verdict(found: Json) -> str:
    """The answer in one line."""
    placed = sum(each["count"] for each in found["places"])
    declared = f" (a gang by {found['gang']})" if found["gang"] else ""
    if found["minimum"]:
        needed = f"of {found['pods']} pods {found['minimum']} are needed together{declared}"
        if found["fits"]:
            return f"fits: {needed}, {placed} would be placed"
        best = f", at most {found['at_best']} fit" if found["at_best"] is not None else ""
        return f"does not fit: {needed}{best}"
    return f"{'fits' if found['fits'] else 'does not fit'}: {placed} of {found['pods']} pods would be placed"
