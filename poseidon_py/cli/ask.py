"""`poseidon status`, `explain`, and what all commands that ask a running scheduler share."""

import functools
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from poseidon_py.cli.errors import fail
from poseidon_py.cli.reaching.routes import AskError, ask
from poseidon_py.cli.reaching.selection import LEASES, LOCAL, Selection
from poseidon_py.kube.credentials import default_kubeconfig
from poseidon_py.kube.kubeconfig import context_names

_COMPLETION_SECONDS = 5.0
_SELECTED = tuple(name for name in Selection.__slots__ if name != "address")
_Option = Callable[[Callable[..., None]], Callable[..., None]]
_FILE = click.Path(dir_okay=False, path_type=Path)


def _contexts(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
    path = context.params.get("kubeconfig") or default_kubeconfig()
    return [name for name in context_names(path) if name.startswith(incomplete)] if path is not None else []


_ADDRESS = (
    "Health port of the scheduler, or https://HOST:PORT of its secure port. {}Default: the leader in the cluster of "
    f"the kubeconfig, else {LOCAL}."
)
_SELECTING = (
    click.option(
        "--kubeconfig",
        type=_FILE,
        help="Kubeconfig of the cluster. With --address: fail if the scheduler serves another API server. Default: "
        "$KUBECONFIG, then ~/.kube/config.",
    ),
    click.option(
        "--context",
        metavar="NAME",
        help="Context of the kubeconfig. Default: its current context.",
        shell_complete=_contexts,
    ),
    click.option("--lease-name", metavar="NAME", help=f"The leader's lease. Default: {LEASES[0]}, then {LEASES[1]}."),
    click.option(
        "--lease-namespace",
        metavar="NAME",
        default=Selection().lease_namespace,
        show_default=True,
        help="Namespace of the lease.",
    ),
    click.option(
        "--token-file", type=_FILE, help="Token for --address https://. Default: that of the kubeconfig's user."
    ),
    click.option(
        "--certificate-authority",
        type=_FILE,
        help="Certificates (PEM) that --address https:// is checked with. Default: those of this machine.",
    ),
)


def question(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags that select the scheduler, as the argument `selection`, and --json, as `as_json`."""

    @functools.wraps(command)
    def with_selection(address: str | None, **given: Any) -> None:
        of_all = {name: given.pop(name) for name in _SELECTED}
        command(selection=Selection(address, **of_all), **given)

    address = click.option("--address", metavar="HOST:PORT", help=_ADDRESS.format(""))
    return _decorated(with_selection, address)


def question_to_replicas(command: Callable[..., None]) -> Callable[..., None]:
    """Likewise, with `selections`: one for each --address, or one without."""

    @functools.wraps(command)
    def with_selections(address: tuple[str, ...], **given: Any) -> None:
        of_all = {name: given.pop(name) for name in _SELECTED}
        command(selections=[Selection(each, **of_all) for each in address or (None,)], **given)

    text = _ADDRESS.format("May be repeated, for several replicas: the leader carries out the plan. ")
    return _decorated(with_selections, click.option("--address", metavar="HOST:PORT", multiple=True, help=text))


def _decorated(command: Callable[..., None], address: _Option) -> Callable[..., None]:
    as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
    options: tuple[_Option, ...] = (as_json, *reversed(_SELECTING), address)
    for option in options:
        command = option(command)
    return command


def in_namespaces(what: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Adds --namespace and --all-namespaces, as the argument `namespace`, empty: all. `what` is listed."""

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_namespace(namespace: str, all_namespaces: bool, **others: Any) -> None:
            command(namespace="" if all_namespaces else namespace, **others)

        decorated: Callable[..., None] = with_namespace
        for option in (
            click.option(
                "--all-namespaces", "-A", is_flag=True, help=f"{what.capitalize()} of all namespaces. The default."
            ),
            click.option(
                "--namespace", "-n", metavar="NAME", default="", help=f"Only {what} in this namespace. Default: all."
            ),
        ):
            decorated = option(decorated)
        return decorated

    return decorate


def names(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completes the names of `gangs`, `jobs` or `queues` of the scheduler that the flags select, if it answers soon."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        given = {name: value for name, value in context.params.items() if name in Selection.__slots__ and value}
        try:
            route = Selection(**given).route(say=lambda _: None)
            body = ask(route, f"/{kind}", timeout=_COMPLETION_SECONDS)
        except (AskError, click.UsageError):
            return []
        return sorted(each["name"] for each in body[kind] if each["name"].startswith(incomplete))

    return complete


@contextmanager
def failing_with(code: int) -> Iterator[None]:
    """Ends the process with the message and the exit code if there is no answer."""
    try:
        yield
    except AskError as error:
        fail(str(error), code)


def answer(path: str, selection: Selection) -> dict[str, Any]:
    """The JSON answer of the scheduler that the flags select. Without one, the process ends with its error, and 1."""
    with failing_with(1):
        return ask(selection.route(), path)


@click.command()
@question
def status(selection: Selection, as_json: bool) -> None:
    """Show the scheduler's view of the cluster."""
    body = answer("/status", selection)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.cli.rendering.render import print_status
    from poseidon_py.util.terminal import new_console

    print_status(body, new_console())


@click.command()
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "--namespace",
    "-n",
    metavar="NAME",
    help="Namespace of a POD without one. Default: that of the context, else default.",
)
@question
def explain(pod: str, namespace: str | None, selection: Selection, as_json: bool) -> None:
    """Show why a pod is pending, and what would let it be placed."""
    if "/" not in pod:
        pod = f"{namespace or selection.namespace}/{pod}"
    body = answer("/explain?" + urlencode({"pod": pod}), selection)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.cli.rendering.render import print_explanation
    from poseidon_py.util.terminal import new_console

    print_explanation(body, new_console())
