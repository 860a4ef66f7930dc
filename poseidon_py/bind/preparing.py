"""What comes before a bind: volumes first, then devices, whose writes are the ones to take back if something fails."""

from collections.abc import Coroutine
from typing import Any, Protocol

from poseidon_py.state.claim_use import PreparationError
from poseidon_py.state.records import PodRecord

Work = Coroutine[Any, Any, None]


class Preparer(Protocol):
    """A part of the preparation."""

    def prepare(self, known: PodRecord, node: str) -> Work | None:
        """An awaitable for the time before the bind, or None. Both may raise PreparationError, the awaitable also
        KubeError."""
        ...


class Preparation:
    """Carries parts out one after the other."""

    def __init__(self, volumes: Preparer, devices: Preparer) -> None:
        self._volumes = volumes
        self._devices = devices

    def prepare(self, known: PodRecord, node: str) -> Work | None:
        """All is reserved at once, so that no other placement of the round gets it; what was reserved is free again
        when the placement ends."""
        devices = self._devices.prepare(known, node) if known.devices.any else None
        if not known.volumes.claims:
            return devices
        try:
            volumes = self._volumes.prepare(known, node)
        except PreparationError:
            if devices is not None:
                devices.close()
            raise
        if devices is None or volumes is None:
            return devices or volumes
        return _both(volumes, devices)


async def _both(first: Work, then: Work) -> None:
    try:
        await first
    except BaseException:
        then.close()
        raise
    await then
