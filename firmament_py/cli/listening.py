"""The addresses on which `firmament serve` listens, and the TLS that an address requires."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from firmament_py.service.server import wrong_address
from firmament_py.service.tls_files import Tls
from protos.addresses import DIRECT, is_local
from protos.pem_files import PemFileError

_Command = TypeVar("_Command", bound=Callable[..., Any])
_PEM = click.Path(exists=True, dir_okay=False, path_type=Path)


def tls_options(command: _Command) -> _Command:
    """Adds the flags of certificates."""
    for add in reversed(_OPTIONS):
        command = add(command)
    return command


_OPTIONS = (
    click.option("--tls-cert-file", type=_PEM, help="PEM certificate; enables TLS. Read again when it changes."),
    click.option("--tls-private-key-file", type=_PEM, help="PEM key of the certificate."),
    click.option(
        "--client-ca-file",
        type=_PEM,
        help="PEM certificates of CAs; clients must present a certificate that one of these signed. Read again when it "
        "changes.",
    ),
    click.option(
        "--insecure",
        is_flag=True,
        help="Let other machines connect without a certificate: everybody who reaches the addresses can place tasks "
        "and report usage.",
    ),
)


def tls_of(certificate: Path | None, key: Path | None, client_ca: Path | None) -> Tls | None:
    """None: without TLS. Raises click.UsageError if files are missing, or cannot be used."""
    if (certificate is None) != (key is None) or (client_ca and certificate is None):
        raise click.UsageError(
            "--tls-cert-file and --tls-private-key-file go together, and --client-ca-file needs both"
        )
    if certificate is None or key is None:
        return None
    tls = Tls(certificate, key, client_ca)
    try:
        tls.check()
    except PemFileError as error:
        raise click.UsageError(str(error)) from error
    return tls


def check_addresses(address: str, stats_address: str, tls: Tls | None, *, insecure: bool) -> None:
    """Raises click.UsageError for what is no address, and for those at which other machines could connect without a
    certificate, unless that is wanted: `insecure`. `tls`: that of `address`."""
    for flag, each in (("--address", address), ("--stats-address", stats_address or address)):
        if wrong := wrong_address(each):
            raise click.UsageError(f"{flag} {each!r} {wrong}")
    if stats_address.startswith(DIRECT):
        raise click.UsageError("--stats-address serves gRPC alone: give HOST:PORT or unix:PATH")
    if tls is not None and address.startswith(DIRECT):
        raise click.UsageError(f"--address {address} takes no certificates: its file has the rights; omit them")
    if insecure:
        return
    if (tls is None or tls.client_ca is None) and not is_local(address):
        raise click.UsageError(
            f"--address {address} is open to other machines: give --tls-cert-file, --tls-private-key-file and "
            "--client-ca-file, so that only holders of a certificate can connect; or --insecure, so that everybody can"
        )
    if stats_address and not is_local(stats_address):
        raise click.UsageError(
            f"--stats-address {stats_address} is open to other machines, and has no TLS: give an address of loopback; "
            "or --insecure, so that everybody can report usage"
        )
