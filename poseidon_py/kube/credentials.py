"""The address of the API server, and the credentials for it.

The `kubernetes` package reads kubeconfigs in all forms, with exec and auth-provider plug-ins. It is imported late,
because the import takes a good part of a second and 20 MB, and called in a thread, because it reads files and starts
plug-ins. A pod does without it (kube/service_account.py).
"""

import asyncio
import os
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from poseidon_py.kube import service_account
from poseidon_py.kube.kubeconfig import wrong_form
from poseidon_py.kube.service_account import ServiceAccountError


class CredentialsError(Exception):
    """There are no usable credentials; the message names the file and the reason."""


@dataclass(slots=True)
class Access:
    """The address of an API server and the credentials for it. `headers` change when the token is refreshed."""

    scheme: str
    host: str
    port: int
    prefix: str
    """Path prefix of the API, without a trailing slash; usually empty."""
    tls: ssl.SSLContext | None
    headers: dict[str, str]
    proxy: str | None = None
    tls_name: str | None = None
    """The name in the server's certificate, if it is not `host`."""
    namespace: str = "default"
    in_cluster: bool = False
    configuration: Any = None
    """That of the `kubernetes` package from which this was loaded; None: from none (see `package_configuration`)."""
    _read_headers: Callable[[], dict[str, str]] | None = None

    @property
    def url(self) -> str:
        """The URL of the API, without a trailing slash."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.scheme}://{host}:{self.port}{self.prefix}"

    @property
    def host_header(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    async def refresh(self) -> bool:
        """Read the current token. Returns whether it has changed. Raises CredentialsError."""
        if self._read_headers is None:
            return False
        try:
            headers = await asyncio.to_thread(self._read_headers)
        except Exception as error:  # a credential plug-in may raise anything
            raise CredentialsError(f"cannot refresh the credentials: {error}") from error
        changed, self.headers = headers != self.headers, headers
        return changed


def trusting(authorities: Path | str | None) -> ssl.SSLContext:
    """For a client that trusts the certificates that a file of authorities (PEM), None: of the system, has signed.
    Raises OSError, of which ssl.SSLError is one.

    As for clients in Go, authorities and certificates need no key identifiers, which those of many clusters lack:
    Python asks for them from 3.13 on (VERIFY_X509_STRICT)."""
    context = ssl.create_default_context(cafile=authorities)
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context


def at(url: str, token: str = "", tls: ssl.SSLContext | None = None) -> Access:
    """Access to the server at a URL. Raises CredentialsError."""
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise CredentialsError(f"the API server's address {url!r} is invalid: {error}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise CredentialsError(f"the API server's address {url!r} is not an http or https URL")
    if parts.scheme == "https" and tls is None:
        tls = trusting(None)
    port = port or (443 if parts.scheme == "https" else 80)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    return Access(parts.scheme, parts.hostname, port, parts.path.rstrip("/"), tls, headers)


def default_kubeconfig(environment: Mapping[str, str] = os.environ) -> Path | None:
    """$KUBECONFIG, which may list several files, else ~/.kube/config if it exists."""
    if environment.get("KUBECONFIG"):
        return Path(environment["KUBECONFIG"])
    home = Path.home() / ".kube" / "config"
    return home if home.exists() else None


async def load(kubeconfig: Path | None, context: str | None) -> Access:
    """Access by a kubeconfig, or in-cluster without one. Raises CredentialsError."""
    path = kubeconfig or default_kubeconfig()
    return await (asyncio.to_thread(_in_pod) if path is None else asyncio.to_thread(_by_kubeconfig, path, context))


def _in_pod() -> Access:
    try:
        url, headers = service_account.server(), _token_headers()
    except ServiceAccountError as error:
        raise CredentialsError(
            f"there is no kubeconfig, and no service account of a pod ({error}); give --kubeconfig FILE"
        ) from error
    file = service_account.FOLDER / service_account.CERTIFICATES
    try:
        tls = trusting(file)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(f"the certificates of the pod's account, {file}, cannot be used: {error}") from error
    access = at(url, tls=tls)
    access.headers, access._read_headers = headers, _token_headers
    access.proxy = service_account.proxy(access.host)
    access.namespace, access.in_cluster = service_account.namespace(), True
    return access


def _token_headers() -> dict[str, str]:
    return _authorization(f"Bearer {service_account.token()}")


def package_configuration(access: Access) -> Any:
    """What the `kubernetes` package needs for requests of its own; None: access by neither a kubeconfig nor a pod."""
    if access.in_cluster and access.configuration is None:
        from kubernetes import client, config

        access.configuration = client.Configuration()
        config.load_incluster_config(client_configuration=access.configuration)  # type: ignore[no-untyped-call]
    return access.configuration


def _by_kubeconfig(path: Path, context: str | None) -> Access:
    from kubernetes import client, config

    configuration = client.Configuration()
    try:
        if os.pathsep not in str(path) and not path.is_file():
            raise CredentialsError(f"there is no kubeconfig {path}; give --kubeconfig FILE")
        config.load_kube_config(str(path), context=context, client_configuration=configuration)  # type: ignore[no-untyped-call]
    except CredentialsError:
        raise
    except Exception as error:  # the loader raises what its YAML parser and plug-ins raise
        why = wrong_form(path) or f"{path}: {' '.join(str(error).split())}"
        raise CredentialsError(f"cannot use the kubeconfig {why}") from error
    tls = _tls(configuration) if configuration.host.startswith("https") else None
    try:
        access = at(configuration.host, tls=tls)
    except CredentialsError as error:
        raise CredentialsError(f"cannot use the kubeconfig {path}: {error}; correct its server") from error
    access.headers = _headers(configuration)
    access.proxy = configuration.proxy
    access.tls_name = getattr(configuration, "tls_server_name", None)
    access.configuration, access._read_headers = configuration, partial(_headers, configuration)
    return access


def _tls(configuration: Any) -> ssl.SSLContext:
    try:
        context = trusting(configuration.ssl_ca_cert)
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, configuration.key_file)
    except (OSError, ssl.SSLError) as error:
        raise CredentialsError(
            f"the certificates of the kubeconfig cannot be used: {error}; correct its certificate files"
        ) from error
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
    return _authorization(token) if token else {}


def _authorization(value: str) -> dict[str, str]:
    if not value.isprintable():
        raise CredentialsError(
            "the token of the kubeconfig, its plug-in or the pod is not a single line of text; renew it"
        )
    return {"Authorization": value}
