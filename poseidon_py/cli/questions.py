"""Questions to the health port of a running scheduler, and whether that is the scheduler that is meant.

Several schedulers may run on one machine, for several clusters. Who does not say which one to ask gets the one on the
default port, so that is asked first which API server it serves.
"""

import json
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from poseidon_py.kube.credentials import default_kubeconfig
from poseidon_py.kube.kubeconfig import server_of

_TIMEOUT_SECONDS = 30.0
_REMEDY = "give --address HOST:PORT of its health port"


class AskError(Exception):
    """There is no answer, or it is not to be trusted; the message says why and what to do."""


def ask(address: str, path: str) -> dict[str, Any]:
    """The JSON that the scheduler at HOST:PORT answers. Raises AskError."""
    try:
        with urllib.request.urlopen(f"http://{address}{path}", timeout=_TIMEOUT_SECONDS) as answer:
            body: Any = json.load(answer)
    except urllib.error.HTTPError as error:
        raise AskError(
            _complaint(error) or f"{address} does not answer like a scheduler: {error}; {_REMEDY}"
        ) from error
    except (OSError, ValueError, RecursionError) as error:
        raise AskError(f"no scheduler at {address}: {getattr(error, 'reason', error)}; {_REMEDY}") from error
    if not isinstance(body, dict):
        raise AskError(f"{address} does not answer like a scheduler; {_REMEDY}")
    return body


def _complaint(error: urllib.error.HTTPError) -> str:
    """What a scheduler says that it cannot answer; empty: this is none."""
    try:
        return str(json.load(error)["error"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return ""


def require_cluster(address: str, kubeconfig: Path | None, context: str | None) -> None:
    """Raises AskError if the scheduler at HOST:PORT serves another API server than the kubeconfig names.

    `kubeconfig` None: the default one; if there is none nothing is checked. Nor is a scheduler inside a cluster, which
    knows its API server by another address than people outside.
    """
    path = kubeconfig or default_kubeconfig()
    wanted = server_of(path, context) if path is not None else ""
    if not wanted:
        if kubeconfig is not None or context is not None:
            named = f"context {context}" if context else "the current context"
            raise AskError(f"the kubeconfig {path} has no server for {named}; correct --kubeconfig or --context")
        return
    serves = ask(address, "/identity")
    server = serves.get("server")
    if server and server != wanted and not serves.get("in_cluster"):
        names = ", ".join(serves.get("scheduler_names") or ())
        raise AskError(
            f"the scheduler at {address} ({names}) serves the API server {server}, not {wanted} of the kubeconfig "
            f"{path}; give --address HOST:PORT of the health port of the one that is meant"
        )
