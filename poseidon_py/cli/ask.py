"""Requests to the health port of a running scheduler: `poseidon status`, `explain` and others.

Several schedulers may run on one machine, for several clusters. Without --address the one on the default port is
queried, and it must serve the API server of the kubeconfig.
"""

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import click

from poseidon_py.cli.errors import fail
from poseidon_py.config.settings import Settings
from poseidon_py.kube.credentials import default_kubeconfig
from poseidon_py.kube.kubeconfig import server_of

_TIMEOUT_SECONDS = 30.0
_REMEDY = "give --address HOST:PORT of its health port"
_COMPLETION_SECONDS = 1.0
DEFAULT_ADDRESS = f"127.0.0.1:{Settings().health_port}"


def question(command: Callable[..., None]) -> Callable[..., None]:
    """Adds the flags that select the scheduler and the output format."""
    for option in (
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--context", metavar="NAME", help="Context of the kubeconfig. Default: its current context."),
        click.option(
            "--kubeconfig",
            type=click.Path(dir_okay=False, path_type=Path),
            help="Kubeconfig of the cluster: fail if the scheduler serves another API server. Default, without "
            "--address: $KUBECONFIG, then ~/.kube/config.",
        ),
        click.option(
            "--address",
            metavar="HOST:PORT",
            help=f"Health port of the scheduler.  [default: {DEFAULT_ADDRESS}]",
        ),
    ):
        command = option(command)
    return command


def names(kind: str) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Completes the names of `gangs`, `jobs` or `queues` of the scheduler that the flags select, if it answers soon."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            body = ask(context.params.get("address") or DEFAULT_ADDRESS, f"/{kind}", timeout=_COMPLETION_SECONDS)
        except AskError:
            return []
        return sorted(each["name"] for each in body[kind] if each["name"].startswith(incomplete))

    return complete


@click.command()
@question
def status(address: str | None, kubeconfig: Path | None, context: str | None, as_json: bool) -> None:
    """Show the scheduler's view of the cluster."""
    body = answer("/status", address, kubeconfig, context)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.cli.rendering.render import print_status
    from poseidon_py.util.terminal import new_console

    print_status(body, new_console())


@click.command()
@click.argument("pod", metavar="[NAMESPACE/]POD")
@click.option(
    "--namespace", "-n", metavar="NAME", default="default", show_default=True, help="Namespace of a POD without one."
)
@question
def explain(
    pod: str, namespace: str, address: str | None, kubeconfig: Path | None, context: str | None, as_json: bool
) -> None:
    """Show why a pod is pending, and what would let it be placed."""
    if "/" not in pod:
        pod = f"{namespace}/{pod}"
    body = answer("/explain?" + urlencode({"pod": pod}), address, kubeconfig, context)
    if as_json:
        click.echo(json.dumps(body, indent=2))
        return
    from poseidon_py.cli.rendering.render import print_explanation
    from poseidon_py.util.terminal import new_console

    print_explanation(body, new_console())


def answer(path: str, address: str | None, kubeconfig: Path | None, context: str | None) -> dict[str, Any]:
    """The JSON answer of the scheduler that the flags select. Without one, the process ends with its error, and 1."""
    try:
        if address is None or kubeconfig is not None or context is not None:
            require_cluster(address or DEFAULT_ADDRESS, kubeconfig, context)
        return ask(address or DEFAULT_ADDRESS, path)
    except AskError as error:
        fail(str(error), 1)


class AskError(Exception):
    """There is no answer, or another scheduler answers; the message gives the reason and the remedy.

    `status`: that of the HTTP answer; 0: there is none.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


def ask(
    address: str, path: str, *, method: str = "GET", body: bytes | None = None, timeout: float = _TIMEOUT_SECONDS
) -> dict[str, Any]:
    """The JSON answer of the scheduler at HOST:PORT. `body`: JSON; `timeout`: seconds. Raises AskError."""
    headers = {"Content-Type": "application/json"} if method != "GET" else {}
    request = urllib.request.Request(f"http://{address}{path}", body, headers, method=method)
    try:
        with urllib.request.urlopen(request, timeout=timeout) as answer:
            found: Any = json.load(answer)
    except urllib.error.HTTPError as error:
        problem = _error_message(error) or f"{address} is not a scheduler: {error}; {_REMEDY}"
        raise AskError(problem, error.code) from error
    except (OSError, ValueError, RecursionError, http.client.HTTPException) as error:
        raise AskError(f"no scheduler at {address}: {getattr(error, 'reason', error)}; {_REMEDY}") from error
    if not isinstance(found, dict):
        raise AskError(f"{address} is not a scheduler; {_REMEDY}")
    return found


def _error_message(error: urllib.error.HTTPError) -> str:
    """The error message of a scheduler; empty: the answer is not from a scheduler."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def _without_server(path: Path | None, context: str | None) -> str:
    """Why a kubeconfig names no API server, and the remedy."""
    if path is None:
        return f"there is no kubeconfig with the context {context}; give --kubeconfig, or omit --context"
    if not path.exists() and os.pathsep not in str(path):
        return f"the kubeconfig {path} does not exist; correct --kubeconfig"
    named = f"context {context}" if context else "the current context"
    return f"the kubeconfig {path} has no server for {named}; correct --kubeconfig or --context"


def require_cluster(address: str, kubeconfig: Path | None, context: str | None) -> None:
    """Check that the scheduler at HOST:PORT serves the API server that the kubeconfig names. Raises AskError if not.

    `kubeconfig` None: the default one; without one nothing is checked. A scheduler inside a cluster is not checked
    either: it reaches its API server by another address than clients outside.
    """
    path = kubeconfig or default_kubeconfig()
    expected = server_of(path, context) if path is not None else ""
    if not expected:
        if kubeconfig is not None or context is not None:
            raise AskError(_without_server(path, context))
        return
    serves = ask(address, "/identity")
    server = serves.get("server")
    if server and server != expected and not serves.get("in_cluster"):
        names = ", ".join(serves.get("scheduler_names") or ())
        raise AskError(
            f"the scheduler at {address} ({names}) serves the API server {server}, not {expected} of the kubeconfig "
            f"{path}; give --address HOST:PORT of the health port of the right scheduler"
        )
