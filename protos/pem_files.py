"""PEM files of certificates and keys: whether they can be used, and whether they were written anew."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl


class PemFileError(ValueError):
    """A file cannot be used; the message names its option, the file and the remedy."""


def check_pair(cert_option: str, certificate: Path | None, key_option: str, key: Path | None) -> None:
    """Raises PemFileError if the two do not belong together. The options are named in messages."""
    if certificate is None or key is None:
        return
    check_certificates(cert_option, certificate)
    _check_file(key_option, key)
    context = _tls_context()
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:  # of which SSLError is one
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise PemFileError(
                f"{key_option} {key} is not the key of {cert_option} {certificate}; give the two that belong together"
            ) from error
        raise PemFileError(
            f"{key_option} {key} cannot be used ({_why(error)}); give a PEM key without a password"
        ) from error


def check_certificates(option: str, file: Path | None) -> None:
    """Raises PemFileError if the file of this option contains no certificates."""
    if file is None:
        return
    _check_file(option, file)
    try:
        _tls_context().load_verify_locations(file)
    except OSError as error:  # of which SSLError is one
        raise PemFileError(
            f"{option} {file} cannot be used ({_why(error)}); give a readable file of PEM certificates"
        ) from error


def states(files: Iterable[Path | None]) -> tuple[object, ...]:
    """Equal while none of the files was written; without those that are None."""
    return tuple(_state(file) for file in files if file is not None)


def _state(file: Path) -> object:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def _check_file(option: str, file: Path) -> None:
    if not file.is_file():
        raise PemFileError(f"there is no file {file}; correct {option}")


def _why(error: OSError) -> str:
    """The reason, without the location in OpenSSL's source."""
    reason = getattr(error, "reason", None)
    if reason:
        return str(reason).replace("_", " ").lower()
    return (error.strerror or str(error)).removeprefix("[SSL] ").partition(" (_ssl.c:")[0]


def _tls_context() -> ssl.SSLContext:
    """A context that accepts keys of any length: their strength is not validated here."""
    import ssl  # an engine without certificates does without OpenSSL

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context
