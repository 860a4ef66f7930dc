"""The settings of what is served over HTTP."""

from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from poseidon_py.config.setting import setting

_Port = Annotated[int, Meta(ge=-1, le=65535)]


class ServingSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The first fields of Settings."""

    health_address: Annotated[
        str,
        setting(
            "Address of the health port. Requests from other machines get the probes alone, whatever the address.",
            metavar="HOST",
        ),
    ] = "127.0.0.1"
    health_port: Annotated[
        _Port,
        setting("The health port: health, metrics and JSON over HTTP. 0: any free port; -1: none.", metavar="PORT"),
    ] = 10271
    bind_address: Annotated[str, setting("Address of the secure port.", metavar="HOST")] = "0.0.0.0"
    secure_port: Annotated[
        _Port,
        setting(
            "The secure port: the same over HTTPS, for tokens that the API server knows and permits to use the path. "
            "0: any free port; -1: none.",
            metavar="PORT",
        ),
    ] = -1
    dashboard: Annotated[
        bool,
        setting(
            "Serve a page under /dashboard/ at these ports, which shows rounds, jobs, queues and nodes; needs the "
            "package plotly (extra dashboard)."
        ),
    ] = False
    tls_cert_file: Annotated[
        Path | None,
        setting(
            "Certificate (PEM, with its chain) of the secure port; read again when it changes. Default: a self-signed "
            "one, made at the start."
        ),
    ] = None
    tls_private_key_file: Annotated[
        Path | None, setting("Private key (PEM) of the certificate of the secure port.")
    ] = None
