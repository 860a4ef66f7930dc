"""What a process listens on, by Linux' /proc."""

import ipaddress
import os
import struct
from collections.abc import Iterator
from pathlib import Path

_LISTENS = "0A"
"""State of a TCP socket."""
_ACCEPTS = "00010000"
"""Flag of a unix socket."""


def listening_sockets(pid: int) -> set[str]:
    """HOST:PORT and unix:PATH, of the process and its children."""
    own = {name for each in _family(pid) for name in _sockets(each)}
    found = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == _LISTENS and f"socket:[{fields[9]}]" in own:
                found.add(_address(fields[1]))
    for line in Path(f"/proc/{pid}/net/unix").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == _ACCEPTS and f"socket:[{fields[6]}]" in own:
            found.add(f"unix:{fields[7]}")
    return found


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def _sockets(pid: int) -> Iterator[str]:
    for each in Path(f"/proc/{pid}/fd").iterdir():
        try:
            yield os.readlink(each)
        except OSError:  # closed meanwhile
            continue


def _address(field: str) -> str:
    """Of words of four bytes in the machine's order."""
    host, port = field.split(":")
    words = [int(host[at : at + 8], 16) for at in range(0, len(host), 8)]
    return f"{ipaddress.ip_address(b''.join(struct.pack('=I', word) for word in words))}:{int(port, 16)}"
