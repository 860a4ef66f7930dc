"""Certificates made in tests."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID


@dataclass(frozen=True)
class Pair:
    """PEM files."""

    certificate: Path
    key: Path

    def copy_to(self, other: "Pair") -> None:
        other.certificate.write_bytes(self.certificate.read_bytes())
        other.key.write_bytes(self.key.read_bytes())


class Authority:
    """A CA; its certificate is in the file `certificate`."""

    def __init__(self, folder: Path, name: str) -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _named(name)
        self.certificate = folder / f"{name}.pem"
        self.certificate.write_bytes(_pem(self._sign(self._name, self._key, ca=True)))

    def issue(self, name: str, *hosts: str) -> Pair:
        """A certificate for these hosts and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        pair = Pair(self._folder / f"{name}.pem", self._folder / f"{name}.key")
        pair.certificate.write_bytes(_pem(self._sign(_named(name), key, *hosts)))
        pair.key.write_bytes(private(key))
        return pair

    def _sign(
        self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, *hosts: str, ca: bool = False
    ) -> x509.Certificate:
        now = datetime.datetime.now(datetime.UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(days=1))
            .add_extension(x509.BasicConstraints(ca, None), critical=True)
        )
        if hosts:
            builder = builder.add_extension(x509.SubjectAlternativeName([_host(each) for each in hosts]), False)
        return builder.sign(self._key, hashes.SHA256())


def private(key: ec.EllipticCurvePrivateKey, password: bytes = b"") -> bytes:
    """PEM."""
    locked = serialization.BestAvailableEncryption(password) if password else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, locked)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)
