"""Kubernetes' library `url`: absolute URLs, or absolute paths, by the rules of Go's net/url."""

import re
from dataclasses import dataclass
from ipaddress import IPv6Address
from urllib.parse import quote, unquote, unquote_to_bytes

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload, reads_first
from poseidon_py.devices.cel.values import ListValue, MapValue, register

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_ESCAPES = re.compile(r"%(?![0-9A-Fa-f]{2})")
_HOST = re.compile(r"(?:[A-Za-z0-9\-_.~!$&'()*+,;=:\[\]<>\"\x80-\U0010ffff]|%[89A-Fa-f][0-9A-Fa-f])*")
_BRACKETED = re.compile(r"\[[^\]]*\](?::[0-9]*)?")
_USER = re.compile(r"[A-Za-z0-9\-._:~!$&'()*+,;=%@]*")
_PATH = re.compile(r"[A-Za-z0-9\-_.~!$&'()*+,;=:@/\[\]%]*")
_KEPT_IN_PATHS = "$&+,/:;=@-_.~"


@dataclass(frozen=True, slots=True)
class Url:
    scheme: str
    host: str
    """With the port."""
    path: str
    """As written."""
    query: str
    fragment: str = ""
    opaque: str = ""
    user: str = ""

    def __len__(self) -> int:
        return sum(map(len, (self.scheme, self.host, self.path, self.query, self.fragment, self.opaque, self.user)))

    def hostname(self) -> str:
        return self._parts()[0].removeprefix("[").removesuffix("]")

    def port(self) -> str:
        return self._parts()[1]

    def _parts(self) -> tuple[str, str]:
        host, colon, port = self.host.rpartition(":")
        valid = colon and not set(port) - set("0123456789")
        return (host, port) if valid else (self.host, "")


register(Url, "kubernetes.URL")


def _refused(text: str, reason: str) -> EvaluationError:
    return EvaluationError(f"URL parse error during conversion from string: parse {text[:60]!r}: {reason}")


def _url(text: str) -> Url:
    """Raises EvaluationError."""
    if not text:
        raise _refused(text, "empty url")
    _parse(text, text, request=True)
    before, _, fragment = text.partition("#")
    if _ESCAPES.search(fragment):
        raise _refused(text, "invalid URL escape")
    parsed = _parse(text, before, request=False)
    return Url(parsed.scheme, parsed.host, parsed.path, parsed.query, fragment, parsed.opaque, parsed.user)


def _parse(text: str, url: str, *, request: bool) -> Url:
    if _CONTROL.search(url):
        raise _refused(text, "invalid control character in URL")
    if url == "*":
        return Url("", "", "*", "")
    found = _SCHEME.match(url)
    if found is None and url.startswith(":"):
        raise _refused(text, "missing protocol scheme")
    scheme = found[1].lower() if found else ""
    remainder, _, query = (url[found.end() :] if found else url).partition("?")
    if not remainder.startswith("/"):
        if scheme:
            return Url(scheme, "", "", query, opaque=remainder)
        if request:
            raise _refused(text, "invalid URI for request")
        if ":" in remainder.split("/")[0]:
            raise _refused(text, "first path segment in URL cannot contain colon")
    host = user = ""
    if remainder.startswith("//") and (scheme or (not request and not remainder.startswith("///"))):
        authority, slash, path = remainder[2:].partition("/")
        remainder = slash + path
        user, _, host = authority.rpartition("@")
        _check_authority(text, user, host)
    if _ESCAPES.search(remainder):
        raise _refused(text, "invalid URL escape")
    return Url(scheme, host, remainder, query, user=user)


def _check_authority(text: str, user: str, host: str) -> None:
    if not _USER.fullmatch(user) or _ESCAPES.search(user):
        raise _refused(text, "net/url: invalid userinfo")
    if _ESCAPES.search(host):
        raise _refused(text, "invalid URL escape")
    if "[" in host:
        if not host.startswith("["):
            raise _refused(text, "invalid IP-literal")
        if "]" not in host:
            raise _refused(text, "missing ']' in host")
        if not _BRACKETED.fullmatch(host):
            raise _refused(text, "invalid port after host")
        try:
            IPv6Address(unquote(host[1 : host.index("]")]))
        except ValueError:
            raise _refused(text, "invalid host") from None
        return
    if not set(host.partition(":")[2]) <= set("0123456789"):
        raise _refused(text, "invalid port after host")
    if not _HOST.fullmatch(host):
        raise _refused(text, "invalid character in host name")


def is_url(text: str) -> bool:
    """Without looking for a fragment."""
    try:
        if not text:
            return False
        _parse(text, text, request=True)
    except EvaluationError:
        return False
    return True


def _escaped_path(url: Url) -> str:
    if url.path == "*" or _PATH.fullmatch(url.path):
        return url.path
    return quote(unquote_to_bytes(url.path), safe=_KEPT_IN_PATHS)


def _query(url: Url) -> MapValue:
    """Values by name; pairs with an invalid escape or a semicolon are left out."""
    found: dict[str, list[str]] = {}
    for pair in url.query.split("&"):
        if not pair or ";" in pair or _ESCAPES.search(pair):
            continue
        name, _, value = (
            unquote_to_bytes(part.replace("+", " ")).decode(errors="replace") for part in pair.partition("=")
        )
        found.setdefault(name, []).append(value)
    return MapValue((name, ListValue(values)) for name, values in found.items())


OVERLOADS = [
    overload("url(string) -> url", _url, reads_first),
    overload("isURL(string) -> bool", is_url, reads_first),
    overload("url::getScheme() -> string", lambda url: url.scheme),
    overload("url::getHost() -> string", lambda url: url.host),
    overload("url::getHostname() -> string", Url.hostname, reads_first),
    overload("url::getPort() -> string", Url.port, reads_first),
    overload("url::getEscapedPath() -> string", _escaped_path, reads_first),
    overload("url::getQuery() -> map(string, list(string))", _query, lambda url: max(1, len(url.query) // 2)),
]
