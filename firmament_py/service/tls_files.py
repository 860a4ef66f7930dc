"""The files of a server's TLS."""

from dataclasses import dataclass
from pathlib import Path

from protos.pem_files import check_certificates, check_pair


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files. With `client_ca` clients must present a certificate of this CA (mutual TLS)."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    def check(self) -> None:
        """Raises PemFileError; the error of gRPC would say only that it cannot listen."""
        check_pair("--tls-cert-file", self.certificate, "--tls-private-key-file", self.key)
        check_certificates("--client-ca-file", self.client_ca)

    @property
    def files(self) -> tuple[Path, ...]:
        return tuple(file for file in (self.certificate, self.key, self.client_ca) if file is not None)
