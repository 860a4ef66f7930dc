"""TLS credentials of the gRPC server, reloaded when their files change: certificate, key and the CAs of clients."""

import logging

import grpc

from firmament_py.service.tls_files import Tls
from protos.pem_files import PemFileError, states

log = logging.getLogger(__name__)


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
