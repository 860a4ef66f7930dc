"""Exclusive holdings of a pod on its node: host ports, and in-tree disks without a claim. Pure.

As tokens of the contract: "TCP:80" is the port on every address, "TCP:80/10.0.0.1" on one address; "gce-pd:x" is a disk
in use for writing, "gce-pd:x/" one in use for reading, which other readers may share.
"""

from collections.abc import Iterable

from msgspec import Raw

from poseidon_py.kube.object_details import Disk, Ports
from poseidon_py.kube.objects import NOTHING, Container, Pod, PodVolume, decode

_EVERY_ADDRESS = "0.0.0.0"
_PROTOCOLS = ("TCP:", "UDP:", "SCTP:")


def tokens(pod: Pod) -> list[str]:
    """The tokens of a pod, sorted, without duplicates. Raises InvalidField."""
    found = _ports(pod)
    for volume in pod.spec.volumes or ():
        found |= _disks(volume)
    # the token of the whole includes its parts
    return sorted(token for token in found if "/" not in token or token.partition("/")[0] not in found)


def is_port(token: str) -> bool:
    return token.startswith(_PROTOCOLS)


def _ports(pod: Pod) -> set[str]:
    spec = pod.spec
    sidecars = [c for c in spec.init_containers or () if c.restart_policy == "Always"]
    found = set()
    for path, containers in (("spec.initContainers", sidecars), ("spec.containers", spec.containers or ())):
        for port in _declared(containers, path):
            # with hostNetwork every container port is a host port; API servers fill that in
            number = port.host_port or (port.container_port if spec.host_network else 0)
            if number > 0:
                address = port.host_ip or _EVERY_ADDRESS
                token = f"{port.protocol or 'TCP'}:{number}"
                found.add(token if address == _EVERY_ADDRESS else f"{token}/{address}")
    return found


def _declared(containers: Iterable[Container], path: str) -> Ports:
    return [
        port
        for container in containers
        if container.ports is not NOTHING
        for port in decode(container.ports, Ports, f"{path}.ports") or ()
    ]


def _disks(volume: PodVolume) -> set[str]:
    found: set[str] = set()
    if disk := _disk(volume.gce_disk):
        found.add(_shared(f"gce-pd:{_plain(disk.gce)}", disk.read_only))
    if disk := _disk(volume.aws_disk):
        found.add(_shared(f"aws-ebs:{_plain(disk.aws)}", False))
    if disk := _disk(volume.iscsi):
        found.add(_shared(f"iscsi:{_plain(disk.iqn)}", disk.read_only))
    if disk := _disk(volume.rbd):
        # two RBD volumes are the same if they have a monitor in common
        for monitor in disk.monitors or ():
            found.add(_shared(f"rbd:{_plain(monitor)}:{_plain(disk.pool)}:{_plain(disk.image)}", disk.read_only))
    return found


def _disk(raw: Raw) -> Disk | None:
    return None if raw is NOTHING else decode(raw, Disk, "spec.volumes")


def _shared(token: str, read_only: bool | None) -> str:
    return f"{token}/" if read_only else token


def _plain(name: str) -> str:
    return name.replace("/", "%2F")
