"""Kubernetes' libraries `ip` and `cidr`."""

import re
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import TypeAlias

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import overload, reads_first, reads_twice, tenth
from poseidon_py.devices.cel.values import Value, register

Address: TypeAlias = IPv4Address | IPv6Address

_BITS = re.compile(r"0|[1-9][0-9]{0,2}")
_BROADCAST = IPv4Address("255.255.255.255")
_LINK_LOCAL_V4 = ip_network("224.0.0.0/24")


@dataclass(frozen=True, slots=True)
class Cidr:
    """An address with the length of its prefix; bits behind the prefix may be set."""

    address: Address
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def masked(self) -> "Cidr":
        shift = self.address.max_prefixlen - self.bits
        return Cidr(type(self.address)(int(self.address) >> shift << shift), self.bits)

    def holds(self, address: Address) -> bool:
        return type(address) is type(self.address) and Cidr(address, self.bits).masked() == self.masked()


register(IPv4Address, "net.IP")
register(IPv6Address, "net.IP")
register(Cidr, "net.CIDR")


def _address(text: str) -> Address:
    try:
        address = ip_address(text)
    except ValueError:
        raise EvaluationError(f"IP Address {text[:60]!r} parse error during conversion from string") from None
    if isinstance(address, IPv6Address):
        if "%" in text:
            raise EvaluationError(f"IP address {text[:60]!r} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise EvaluationError(f"IPv4-mapped IPv6 address {text[:60]!r} is not allowed")
    return address


def _cidr(text: str) -> Cidr:
    address, _, bits = text.rpartition("/")
    found = _address(address)
    if not _BITS.fullmatch(bits) or int(bits) > found.max_prefixlen:
        raise EvaluationError(f"network address parse error during conversion from string: {text[:60]!r}")
    return Cidr(found, int(bits))


def _is_address(text: str) -> bool:
    try:
        _address(text)
    except EvaluationError:
        return False
    return True


def _is_cidr(text: str) -> bool:
    try:
        _cidr(text)
    except EvaluationError:
        return False
    return True


def _holds_cidr(outer: Cidr, inner: Cidr) -> bool:
    return outer.bits <= inner.bits and outer.holds(inner.address)


def _link_local_multicast(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in _LINK_LOCAL_V4
    return int(address) >> 112 & 0xFF0F == 0xFF02


def _global_unicast(address: Address) -> bool:
    return not (
        address == _BROADCAST
        or address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
    )


def _bytes_of(network: Cidr) -> int:
    return network.address.max_prefixlen // 8


def _inside(network: Cidr, other: Value) -> int:
    """Comparing addresses, after reading the text if the other is one."""
    return tenth(2 * _bytes_of(network)) + (tenth(len(other)) if isinstance(other, str) else 0)


def _within(network: Cidr, other: Value) -> int:
    return _inside(network, other) + tenth(_bytes_of(network)) + 1


OVERLOADS = [
    overload("ip(string) -> ip", _address, reads_first),
    overload("isIP(string) -> bool", _is_address, reads_first),
    overload("ip.isCanonical(string) -> bool", lambda text: str(_address(text)) == text, reads_twice),
    overload("ip::family() -> int", lambda address: address.version),
    overload("ip::isUnspecified() -> bool", lambda address: address.is_unspecified),
    overload("ip::isLoopback() -> bool", lambda address: address.is_loopback),
    overload("ip::isLinkLocalMulticast() -> bool", _link_local_multicast),
    overload("ip::isLinkLocalUnicast() -> bool", lambda address: address.is_link_local),
    overload("ip::isGlobalUnicast() -> bool", _global_unicast),
    overload("string(ip) -> string", str),
    overload("cidr(string) -> cidr", _cidr, reads_first),
    overload("isCIDR(string) -> bool", _is_cidr, reads_first),
    overload("cidr::containsIP(string) -> bool", lambda network, text: network.holds(_address(text)), _inside),
    overload("cidr::containsIP(ip) -> bool", Cidr.holds, _inside),
    overload("cidr::containsCIDR(string) -> bool", lambda outer, text: _holds_cidr(outer, _cidr(text)), _within),
    overload("cidr::containsCIDR(cidr) -> bool", _holds_cidr, _within),
    overload("cidr::ip() -> ip", lambda network: network.address),
    overload("cidr::prefixLength() -> int", lambda network: network.bits),
    overload("cidr::masked() -> cidr", Cidr.masked),
    overload("string(cidr) -> string", str),
]
