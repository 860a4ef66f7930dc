"""TLS credentials of the gRPC server, reloaded when their files change: certificate, key and the CAs of clients."""

import logging
from dataclasses import dataclass
from pathlib import Path

import grpc

from protos.pem_files import PemFileError, check_certificates, check_pair, states

log = logging.getLogger(__name__)


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


class RenewedCredentials:
    """Those of a server: of the files as they are when a client connects. Files that cannot be used leave the former
    ones in force."""

    def __init__(self, tls: Tls) -> None:
        """Raises PemFileError."""
        self._tls = tls
        self._seen = states(self._tls.files)
        self._refused: tuple[object, ...] = ()
        """The state of the files of which the log has a warning."""
        tls.check()
        self.credentials = grpc.dynamic_ssl_server_credentials(
            self._read(),
            self._newest,  # type: ignore[arg-type]  # which may return None, by gRPC's documentation
            require_client_authentication=tls.client_ca is not None,
        )

    def _newest(self) -> grpc.ServerCertificateConfiguration | None:
        """Called for each connection; None: what there was is still in force. gRPC takes a configuration only once."""
        found = states(self._tls.files)
        if found in (self._seen, self._refused):
            return None
        try:
            self._tls.check()
            configuration = self._read()
        except (PemFileError, OSError) as error:
            self._refused = found
            log.warning("the former certificates are still in force: %s", error)
            return None
        if states(self._tls.files) != found:  # they are being written: the next connection finds them whole
            return None
        self._seen = found
        log.info("the certificates were renewed: %s", ", ".join(map(str, self._tls.files)))
        return configuration

    def _read(self) -> grpc.ServerCertificateConfiguration:
        tls = self._tls
        authority = tls.client_ca.read_bytes() if tls.client_ca is not None else None
        return grpc.ssl_server_certificate_configuration(
            [(tls.key.read_bytes(), tls.certificate.read_bytes())], root_certificates=authority
        )
