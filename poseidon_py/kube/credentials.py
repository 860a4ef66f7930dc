"""Where the API server is and who we are to it.

The loading is left to the `kubernetes` package: kubeconfig in all its forms, exec and auth-provider plug-ins,
in-cluster tokens that rotate. It is imported late, because that takes a good part of a second, and called in a
thread, because it reads files and starts plug-ins.
"""

import asyncio
import os
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from poseidon_py.kube.kubeconfig import wrong_form


class CredentialsError(Exception):
    """There are no usable credentials; the message says which file, and why."""


@dataclass(slots=True)
class Access:
    """An API server and how to be let in. `headers` change when the token is refreshed."""

    scheme: str
    host: str
    port: int
    prefix: str
    """Path under which the API lives, without a trailing slash; usually empty."""
    tls: ssl.SSLContext | None
    headers: dict[str, str]
    proxy: str | None = None
    tls_name: str | None = None
    """What the server's certificate calls it, if not by `host`."""
    namespace: str = "default"
    in_cluster: bool = False
    _configuration: Any = None

    @property
    def url(self) -> str:
        """Of the API, without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    @property
    def host_header(self) -> str:
        """For requests that are written by hand."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def refresh(self) -> bool:
        """Asks for the present token. Returns whether it has changed."""
        if self._configuration is None:
            return False
        try:
            headers = await asyncio.to_thread(_headers, self._configuration)
        except Exception as error:  # a plug-in of the user's can raise anything
            raise CredentialsError(f"cannot refresh the credentials: {error}") from error
        changed, self.headers = headers != self.headers, headers
        return changed


def at(url: str, token: str = "", tls: ssl.SSLContext | None = None) -> Access:
    """Access to a server at a plain address."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise CredentialsError(f"the API server's address {url!r} makes no sense: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CredentialsError(f"the API server's address {url!r} is not an http or https URL")
    if parts.scheme == "https" and tls is None:
        tls = ssl.create_default_context()
    port = port or (443 if parts.scheme == "https" else 80)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Access(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), tls, headers)


def default_kubeconfig(environment: Mapping[str, str] = os.environ) -> Path | None:
    """$KUBECONFIG (may be several files) or ~/.kube/config, if there is one."""
    if environment.get("KUBECONFIG"):
        return Path(environment["KUBECONFIG"])
    home = Path.home() / ".kube" / "config"
    return home if home.exists() else None


async def load(kubeconfig: Path | None, context: str | None) -> Access:
    """Access by kubeconfig, or in-cluster if there is none. Raises CredentialsError."""
    return await asyncio.to_thread(_load, kubeconfig or default_kubeconfig(), context)


def _load(path: Path | None, context: str | None) -> Access:
    from kubernetes import client, config

    configuration = client.Configuration()
    namespace, in_cluster = "default", False
    try:
        if path is not None:
            if os.pathsep not in str(path) and not path.is_file():
                raise CredentialsError(f"there is no kubeconfig {path}; give --kubeconfig FILE")
            config.load_kube_config(str(path), context=context, client_configuration=configuration)  # type: ignore[no-untyped-call]
        else:
            config.load_incluster_config(client_configuration=configuration)  # type: ignore[no-untyped-call]
            in_cluster = True
            home = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
            namespace = home.read_text().strip() if home.exists() else namespace
    except CredentialsError:
        raise
    except Exception as error:  # the loader raises what its YAML parser and plug-ins raise
        if path is None:
            raise CredentialsError(
                "there is no kubeconfig, and this is not a pod of a cluster; give --kubeconfig FILE"
            ) from error
        why = wrong_form(path) or f"{path}: {' '.join(str(error).split())}"
        raise CredentialsError(f"cannot use the kubeconfig {why}") from error
    tls = _tls(configuration) if configuration.host.startswith("https") else None
    try:
        access = at(configuration.host, tls=tls)
    except CredentialsError as error:
        if path is None:
            raise
        raise CredentialsError(f"cannot use the kubeconfig {path}: {error}; correct its server") from error
    access.headers = _headers(configuration)
    access.proxy = configuration.proxy
    access.tls_name = getattr(configuration, "tls_server_name", None)
    access.namespace, access.in_cluster = namespace, in_cluster
    access._configuration = configuration
    return access


def _tls(configuration: Any) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"the kubeconfig's certificates cannot be used: {error}") from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _headers(configuration: Any) -> dict[str, str]:
    token = configuration.get_api_key_with_prefix("authorization") or configuration.get_api_key_with_prefix(
        "BearerToken"
    )
    if not token and configuration.username:
        token = configuration.get_basic_auth_token()
    if token and not token.isprintable():
        raise CredentialsError("the token of the kubeconfig, its plug-in or the pod is not one line of text")
    return {"Authorization": token} if token else {}
