"""Where requests come from."""

import ipaddress

from aiohttp import web

from protos.addresses import is_loopback

PERMITTED: web.RequestKey[bool] = web.RequestKey("permitted", bool)
"""Of a request: whether it may have all that its path answers."""

_OF_OTHERS = ("Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-IP", "Via")
"""Headers that proxies add to the requests of others."""
_OF_PAGES = ("cross-site", "same-site")
"""Values of Sec-Fetch-Site with which a browser says that a page of another site asks."""


def is_secure(request: web.Request) -> bool:
    """Whether it came over HTTPS, and so was authenticated."""
    return request.transport is not None and request.transport.get_extra_info("sslcontext") is not None


def from_own_machine(request: web.Request) -> bool:
    """Whether it comes from the same machine or pod, and not from a web page or through a proxy."""
    peer = request.transport.get_extra_info("peername") if request.transport is not None else None
    if not peer or any(name in request.headers for name in _OF_OTHERS):
        return False
    # browsers add it to requests of web pages, also of ours for its own scripts
    if request.headers.get("Origin", own := f"http://{request.host}") != own:
        return False
    if request.headers.get("Sec-Fetch-Site", "") in _OF_PAGES or not _names_this_machine(request.host):
        return False
    return is_loopback(str(peer[0]))


def _names_this_machine(host: str) -> bool:
    """Whether a Host header has an address, or localhost: a name may be a web page's that leads here by its DNS."""
    name = host.rsplit(":", 1)[0] if host.count(":") == 1 or "]" in host else host
    if name.lower() in ("localhost", "localhost.localdomain"):
        return True
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True
