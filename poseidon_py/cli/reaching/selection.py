"""Which scheduler the flags of a command select.

--address                     that one
else the kubeconfig's lease   the leader: through the API server if it is a pod, on this machine if it is a process
else 127.0.0.1:10271          the scheduler there, if it serves the same API server; a line on standard error
                              names it, and says why it is asked
"""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from poseidon_py.cli.errors import UsageProblem
from poseidon_py.cli.reaching.routes import REMEDY, AskError, DirectRoute, PodRoute, Route, ask
from poseidon_py.config.settings import Settings
from poseidon_py.kube.credentials import CredentialsError, default_kubeconfig, load
from poseidon_py.kube.kubeconfig import namespace_of, server_of

if TYPE_CHECKING:
    from poseidon_py.kube.credentials import Access
    from poseidon_py.kube.leader.leader_record import LeaderRecord
    from poseidon_py.kube.leader.leader_search import Leader

LOCAL = f"127.0.0.1:{Settings().health_port}"
LEASES = (Settings().lease_name, "kube-scheduler")
"""Names of the lease, unless one is given: the second one is that of a scheduler in the place of the default one."""
_IDENTITY_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Selection:
    """The flags that select a scheduler; None: not given."""

    address: str | None = None
    kubeconfig: Path | None = None
    context: str | None = None
    lease_name: str | None = None
    lease_namespace: str = Settings().lease_namespace
    token_file: Path | None = None
    certificate_authority: Path | None = None

    @property
    def names_a_cluster(self) -> bool:
        return self.kubeconfig is not None or self.context is not None

    @property
    def namespace(self) -> str:
        """That of the context of the kubeconfig, else `default`."""
        path = self.kubeconfig or default_kubeconfig()
        return (namespace_of(path, self.context) if path is not None else "") or "default"

    def route(self, say: Callable[[str], None] | None = None) -> Route:
        """The way to the scheduler. `say`: prints a line; None: on standard error. Raises AskError, UsageProblem."""
        if self.address is not None:
            return self._direct(self.address)
        path = self.kubeconfig or default_kubeconfig()
        server = server_of(path, self.context) if path is not None else ""
        if path is None or not server:
            if self.names_a_cluster:
                raise AskError(without_server(path, self.context))
            return self._local("there is no kubeconfig of a cluster", "", path, say)
        try:
            access, leader = asyncio.run(self._find(path))
        except (CredentialsError, AskError) as error:
            return self._local(str(error), server, path, say)
        record = leader.record
        if record is None:
            why = (
                f"{leader.holder} holds lease {leader.lease} and does not say there where it answers: it is another "
                "scheduler, or an older version"
            )
            return self._local(why, server, path, say)
        if record.pod and (port := _port(record.health)):
            return PodRoute(access, record.pod, port)
        if route := _on_this_machine(record):
            return route
        return self._local(_out_of_reach(leader, record), server, path, say)

    def _direct(self, address: str) -> Route:
        route = DirectRoute(address, authority=self.certificate_authority)
        if route.secure:
            route = DirectRoute(address, self._token(), self.certificate_authority)
        elif self.token_file is not None or self.certificate_authority is not None:
            raise UsageProblem("--token-file and --certificate-authority are for --address https://HOST:PORT")
        if self.names_a_cluster:
            require_cluster(route, self.kubeconfig, self.context)
        return route

    def _token(self) -> str:
        """For the secure port, which knows no other credentials."""
        if self.token_file is not None:
            try:
                return self.token_file.read_text().strip()
            except (OSError, ValueError) as error:
                raise UsageProblem(f"--token-file {self.token_file}: {error}") from error
        try:
            headers = asyncio.run(load(self.kubeconfig, self.context)).headers
        except CredentialsError as error:
            raise AskError(f"there is no token for {self.address}: {error}; give --token-file FILE") from error
        kind, _, token = headers.get("Authorization", "").partition(" ")
        if kind != "Bearer":
            raise AskError(
                f"{self.address} takes tokens alone, and the user of the kubeconfig has none (a client certificate is "
                "of no use there); give --token-file FILE, as `kubectl create token ACCOUNT` prints one"
            )
        return token

    async def _find(self, path: Path) -> "tuple[Access, Leader]":
        """Raises CredentialsError, and AskError if nobody leads."""
        from poseidon_py.kube.client import Kube
        from poseidon_py.kube.leader.leader_search import NoLeaderError, find_leader

        access = await load(path, self.context)
        kube = Kube(access)
        await kube.start()
        names = (self.lease_name,) if self.lease_name else LEASES
        try:
            return access, await find_leader(kube, self.lease_namespace, names)
        except NoLeaderError as error:
            raise AskError(f"no leader is known in the cluster {access.url}: {error}") from error
        finally:
            await kube.close()

    def _local(self, why: str, server: str, path: Path | None, say: Callable[[str], None] | None) -> Route:
        """The scheduler on the default port. `why` it is asked. Raises AskError if there is none of the cluster."""
        route = DirectRoute(LOCAL)
        try:
            serves = ask(route, "/identity", timeout=_IDENTITY_SECONDS)
        except AskError:
            _nobody(why)
        if server and not _serves(serves, server):
            raise AskError(f"{why}; {_of_another_cluster(route, serves, server, path)}")
        line = f"{who(serves)} answers at {LOCAL}, because {why}"
        click.echo(line, err=True) if say is None else say(line)
        return route


def require_cluster(route: Route, kubeconfig: Path | None, context: str | None) -> None:
    """Check that a scheduler serves the API server that the kubeconfig names. Raises AskError if not.

    A scheduler inside a cluster is not checked: it reaches its API server by another address than clients outside.
    """
    path = kubeconfig or default_kubeconfig()
    expected = server_of(path, context) if path is not None else ""
    if not expected:
        raise AskError(without_server(path, context))
    serves = ask(route, "/identity")
    if not _serves(serves, expected):
        raise AskError(_of_another_cluster(route, serves, expected, path))


def who(serves: dict[str, object]) -> str:
    """A scheduler, by its answer at /identity, in a few words."""
    names = serves.get("scheduler_names")
    pods = f"scheduler of {', '.join(map(str, names))}" if isinstance(names, list) else "a scheduler"
    where = "the API server around it" if serves.get("in_cluster") else f"the API server {serves.get('server')}"
    return f"poseidon {serves.get('version') or '(of an older version)'}, {pods} for {where},"


def without_server(path: Path | None, context: str | None) -> str:
    """Why a kubeconfig names no API server, and the remedy."""
    if path is None:
        return f"there is no kubeconfig with the context {context}; give --kubeconfig, or omit --context"
    if not path.exists() and os.pathsep not in str(path):
        return f"the kubeconfig {path} does not exist; correct --kubeconfig"
    named = f"context {context}" if context else "the current context"
    return f"the kubeconfig {path} has no server for {named}; correct --kubeconfig or --context"


def _serves(serves: dict[str, object], server: str) -> bool:
    return not serves.get("server") or serves.get("server") == server or bool(serves.get("in_cluster"))


def _of_another_cluster(route: Route, serves: dict[str, object], expected: str, path: Path | None) -> str:
    names = serves.get("scheduler_names")
    listed = ", ".join(map(str, names)) if isinstance(names, list) else ""
    return (
        f"the scheduler at {route.name} ({listed}) serves the API server {serves.get('server')}, not {expected} of the "
        f"kubeconfig {path}; give --address HOST:PORT of the health port of the right scheduler"
    )


def _nobody(why: str) -> NoReturn:
    raise AskError(
        f"{why}; nor does a scheduler answer at {LOCAL}. Start one (`poseidon run`, or docs/install.md), select its "
        f"lease by --lease-name and --lease-namespace, or {REMEDY}"
    )


def _on_this_machine(record: "LeaderRecord") -> Route | None:
    """To a leader that is a process, if it is one of this machine: whoever answers at its port says that it is it."""
    if record.pod or not (port := _port(record.health)):
        return None
    host = record.health.rpartition(":")[0]
    local = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]", "": "127.0.0.1"}.get(host, host)
    route = DirectRoute(f"{local}:{port}")
    try:
        serves = ask(route, "/identity", timeout=_IDENTITY_SECONDS)
    except AskError:
        return None
    return route if serves.get("identity") == record.identity else None


def _out_of_reach(leader: "Leader", record: "LeaderRecord") -> str:
    """Why a leader cannot be asked from here."""
    who_leads = f"the leader {leader.holder} is {record.where}"
    if not record.health:
        other = f"; its secure port is {record.secure}: --address https://HOST:PORT" if record.secure else ""
        return f"{who_leads}, which has no health port (--health-port){other}"
    return f"{who_leads}, and answers at {record.health} of its own machine: run the command there"


def _port(address: str) -> int:
    """0: there is none."""
    text = address.rpartition(":")[2]
    return int(text) if text.isdecimal() else 0
