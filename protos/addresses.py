"""Addresses of a flow service: HOST:PORT, unix:PATH, or direct:PATH, at which it serves without gRPC (frames.py)."""

import ipaddress

UNIX = "unix:"
DIRECT = "direct:"
_SCHEMES = ("dns:", "ipv4:", "ipv6:")
"""Of gRPC, before a host."""


def socket_path(address: str) -> str | None:
    """The path of the socket on which it is; None: it is on a port."""
    for scheme in (UNIX, DIRECT):
        if address.startswith(scheme):
            return address.removeprefix(scheme)
    return None


def is_local(address: str) -> bool:
    """Whether only processes of this machine, or of this pod, reach it."""
    if socket_path(address) is not None:
        return True
    for scheme in _SCHEMES:
        address = address.removeprefix(scheme)
    host = address.lstrip("/").rpartition(":")[0].strip("[]")
    return host.lower() == "localhost" or is_loopback(host)


def is_loopback(host: str) -> bool:
    """Whether it is an IP address of the machine or pod itself."""
    try:
        parsed = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(parsed, "ipv4_mapped", None)
    return bool((mapped or parsed).is_loopback)
