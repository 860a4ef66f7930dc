"""`poseidon what-if`: whether the pods of a manifest would fit, now or ever, and what would be with other nodes.

Exit codes: 0 they fit now, 1 later or not as far as is known, 3 never, 2 wrong usage or no answer.
"""

import sys
from typing import TYPE_CHECKING, Any, TextIO

import click

from poseidon_py.cli.ask import question
from poseidon_py.cli.fitting.fits import answered, objects_of, print_fit, show
from poseidon_py.cli.reaching.selection import Selection

if TYPE_CHECKING:
    from rich.console import Console

Json = dict[str, Any]
EXIT_CODES = {"now": 0, "later": 1, "not found": 1, "never": 3}
_STRANDED = 1
_SHOWN = 10
_DIGITS = 10  # no cluster has so many nodes


class Nodes(click.ParamType[Json]):
    """COUNT:NODE or COUNT:RESOURCE=AMOUNT,..."""

    name = "nodes"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Json:
        count, colon, shape = str(value).partition(":")
        if not (colon and count.isascii() and count.isdigit() and len(count) < _DIGITS and int(count) and shape):
            self.fail(f"{value!r} is no number of nodes; give 3:NODE, or 3:cpu=8,memory=32Gi", param, ctx)
        if "=" not in shape:
            return {"count": int(count), "like": shape}
        pairs = [each.partition("=") for each in shape.split(",")]
        if not all(name.strip() and equals and amount.strip() for name, equals, amount in pairs):
            self.fail(f"{shape!r} has no list of resources; give cpu=8,memory=32Gi", param, ctx)
        return {"count": int(count), "amounts": {name.strip(): amount.strip() for name, _, amount in pairs}}


@click.command("what-if")
@click.option(
    "--filename",
    "-f",
    "file",
    type=click.File(encoding="utf-8"),
    help="What `kubectl apply -f` takes; - is the standard input.",
)
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    help="Namespace of objects without one. Default: that of the context, else default.",
)
@click.option("--priority", type=int, help="Priority of all pods of the manifest.")
@click.option("--queue", metavar="NAME", default="", help="Queue whose quotas count for the pods of the manifest.")
@click.option(
    "--minimum",
    type=click.IntRange(min=0),
    help="Pods that are needed together; 0: each is placed on its own. Default: as the manifest declares its gang.",
)
@click.option(
    "--topology", metavar="KEY", default="", help="Node label: all pods of the gang need nodes with the same value."
)
@click.option("--with-preemption", is_flag=True, help="Count nodes that pods of lower priority would be evicted from.")
@click.option(
    "--add-nodes",
    type=Nodes(),
    multiple=True,
    metavar="COUNT:SHAPE",
    help="Suppose further nodes: like another one (3:NODE), or with amounts (3:cpu=8,memory=32Gi). Repeatable.",
)
@click.option(
    "--drain",
    metavar="NODE",
    multiple=True,
    help="Suppose that a node is drained: its pods leave and seek others. Repeatable.",
)
@question
def what_if(
    file: TextIO | None,
    namespace: str | None,
    priority: int | None,
    queue: str,
    minimum: int | None,
    topology: str,
    with_preemption: bool,
    add_nodes: tuple[Json, ...],
    drain: tuple[str, ...],
    selection: Selection,
    as_json: bool,
) -> None:
    """Show whether the pods of a manifest would fit: now, later, or never.

    Later: once others have left. On the cluster as it is, or with other nodes; nothing is created or changed.

    With --drain alone: where the pods of these nodes would go.

    Exit codes: 0 they fit now, 1 later or not as far as is known, 3 never, 2 wrong usage or no answer. With --drain
    alone: 0 all pods find nodes, 1 some do not.
    """
    if file is None and not drain:
        raise click.UsageError("nothing is asked; give a manifest with -f FILE, or --drain NODE")
    objects, problems = ([], []) if file is None else objects_of(file)
    body = {
        "objects": objects,
        "namespace": namespace or selection.namespace,
        "minimum": minimum,
        "topology": topology,
        "priority": priority,
        "override_priority": True,
        "preempt": with_preemption,
        "queue": queue,
        "add_nodes": add_nodes,
        "drain": drain,
        "ever": True,
    }
    found = answered(body, problems, selection)
    show(found, print_what_if, as_json=as_json)
    if not found["pods"]:  # only nodes are drained
        sys.exit(_STRANDED if found["stranded"] else 0)
    sys.exit(EXIT_CODES[found["verdict"]])


def print_what_if(found: Json, console: "Console") -> None:
    """Print the answer of /fits to a question with `ever`."""
    if found["pods"]:
        print_fit(found, console)
        for line in ever_lines(found):
            console.print(line, highlight=False, markup=False)
    if found["displaced"]:
        left = found["stranded"]
        names = ", ".join(left[:_SHOWN]) + (f" and {len(left) - _SHOWN} more" if len(left) > _SHOWN else "")
        line = f"drained: {found['displaced']} pods leave, {found['displaced'] - len(left)} find other nodes"
        console.print(line + (f"; not: {names}" if left else ""), highlight=False, markup=False)
    elif not found["pods"]:
        console.print("drained: no pods but those of DaemonSets would leave", highlight=False, markup=False)


def ever_lines(found: Json) -> list[str]:
    """What is said of pods that do not fit now."""
    match found["verdict"]:
        case "later":
            return ["later: they fit once others have left"]
        case "never":
            best = f", at most {found['at_best_ever']} fit" if found["at_best_ever"] is not None else ""
            first = f"never: they do not fit even if all other pods have left, which is proved{best}"
        case "not found":
            first = "unknown: no way was found even if all other pods have left, which proves nothing"
        case _:
            return []
    return [first, *(f"{each['workload']}: even then: {each['message']}" for each in found["never"])]
