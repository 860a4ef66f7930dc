"""What the client of the flow service asks of what carries its calls."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeVar

from google.protobuf.message import Message

from protos.pem_files import check_certificates, check_pair, states

Reply = TypeVar("Reply", bound=Message)


class CallError(Exception):
    """A call failed. `code`: the name of gRPC's status, or CLOSED if `close` ended it."""

    def __init__(self, code: str, details: str) -> None:
        super().__init__(details)
        self.code = code


class Transport(Protocol):
    """Carries calls to the flow service at one address."""

    async def call(
        self, method: str, argument: Message | AsyncIterator[Message], reply: type[Reply], timeout: float
    ) -> Reply:
        """The reply to one attempt. `argument`: the message, or the messages of a stream; `timeout`: seconds, for all
        of it.

        Raises CallError; if the call was sent, it may have had its effect.
        """
        ...

    async def close(self) -> None:
        """Calls in flight fail, further ones are not sent."""
        ...


@dataclass(frozen=True, slots=True)
class Tls:
    """PEM files: the authority of the service's certificate, and for mutual TLS our certificate and its key."""

    authority: Path
    certificate: Path | None = None
    key: Path | None = None

    def check(self) -> None:
        """Raises PemFileError."""
        check_certificates("firmament-ca-file", self.authority)
        check_pair("firmament-cert-file", self.certificate, "firmament-key-file", self.key)

    def state(self) -> tuple[object, ...]:
        """Equal while none of the files was written."""
        return states((self.authority, self.certificate, self.key))


_UNKNOWN_AUTHORITY = "its certificate is not signed by the authority in firmament-ca-file"
_KNOWN_FAILURES = (
    ("CERTIFICATE_VERIFY_FAILED", _UNKNOWN_AUTHORITY),
    ("certificate signature failure", _UNKNOWN_AUTHORITY),  # which has the same name, and another key
    (
        "WRONG_VERSION_NUMBER",
        "it does not use TLS: omit firmament-ca-file, or start it with --tls-cert-file and --tls-private-key-file",
    ),
    ("Hostname Verification", "its certificate is for another name: use a name that the certificate contains"),
    (
        "Socket closed",
        "it closes the connection: it may require TLS (firmament-ca-file) or a client certificate "
        "(firmament-cert-file)",
    ),
)


def why_unreachable(details: Sequence[str]) -> str:
    """The cause of an error, from the details of several attempts, oldest first.

    All attempts are searched, because for a name with several addresses gRPC reports only one, and a refused connection
    to the next address hides the answer of the first.
    """
    for mark, why in _KNOWN_FAILURES:
        if any(mark in each for each in details):
            return why
    return details[-1].removesuffix(": OK").rsplit(": ", 1)[-1] if details else ""
