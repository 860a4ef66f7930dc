"""The nominations of pending pods: the nodes whose capacity is kept for them while their victims leave.

The engine decides on nominations and the record of a pod has the truth; `status.nominatedNodeName` is written after it,
so that it survives this process and users see it. A value there that another client wrote takes effect, too.

    round, or end of the wait --> record --> row for the engine
                                   |  ^
                  patch of status  v  |  a change that is not the echo of our patch
                                API server
"""

from collections.abc import Callable
from dataclasses import dataclass

from poseidon_py.state.pod_lifecycle import PodState
from poseidon_py.state.records import PodRecord


@dataclass(slots=True)
class Echo:
    """What the watch may still report of earlier values of `status.nominatedNodeName`."""

    observed: str = ""
    """The last reported value."""
    observed_at: int = 0
    """The resource version of that report."""
    patches: int = 0
    """Number of our patches that are due or in flight."""
    patched: str = ""
    """The value that our last patch wrote."""
    version: int = 0
    """Resource version of our last patch: older reports are obsolete."""


class Nominations:
    """The only code that changes `PodRecord.nominated`."""

    def __init__(self, touch_pod: Callable[[str], None]) -> None:
        """`touch_pod`: has the row of a pod sent again."""
        self._touch = touch_pod
        self._echoes: dict[str, Echo] = {}
        """By UID; only of pods that were nominated at some time."""
        self._by_node: dict[str, dict[str, PodRecord]] = {}
        """Name of a node -> the pods that are nominated on it, by UID."""
        self._stale: dict[str, PodRecord] = {}
        """By UID: pods whose status names a node although their nomination has ended here."""

    def set(self, known: PodRecord, node: str) -> bool:
        """Nominates a pending pod; empty `node`: ends its nomination. Returns whether that is a change."""
        if known.state not in (PodState.WAITING, PodState.ASSUMED):
            node = ""
        if known.nominated == node:
            return False
        if known.nominated:
            there = self._by_node[known.nominated]
            del there[known.uid]
            if not there:
                del self._by_node[known.nominated]
        known.nominated = node
        if node:
            self._by_node.setdefault(node, {})[known.uid] = known
        self._touch(known.uid)
        return True

    def on_server(self, known: PodRecord) -> str:
        """The newest known value of `status.nominatedNodeName`."""
        echo = self._echoes.get(known.uid)
        if echo is None:
            return ""
        return echo.patched if echo.observed_at < echo.version else echo.observed

    def follow_server(self, known: PodRecord) -> None:
        """A nomination that was not written is over: what the API server has is the truth again."""
        self.set(known, self.on_server(known))

    def others_on(self, node: str, known: PodRecord | None) -> bool:
        """Whether another pod than this one is nominated on the node; None: any pod."""
        return any(known is None or uid != known.uid for uid in self._by_node.get(node, ()))

    def patch_begins(self, known: PodRecord) -> None:
        """A patch of the status is due: until it has ended, reports have no effect."""
        self._echoes.setdefault(known.uid, Echo()).patches += 1

    def patch_ended(self, known: PodRecord, version: str = "", node: str = "") -> None:
        """`version`: resource version of the pod after the patch, which wrote `node`; empty: it failed."""
        echo = self._echoes.get(known.uid)
        if echo is None:
            return
        echo.patches -= 1
        if _number(version):
            echo.version, echo.patched = int(version), node
        if version and not echo.patches and echo.observed_at > echo.version:
            self.set(known, echo.observed)  # another client wrote it after us

    # -- reports of the watches -------------------------------------------------------------------------------

    def observe(self, known: PodRecord, nominated: str, version: str) -> None:
        """The watch reports a pod with this `status.nominatedNodeName`, at this resource version."""
        if nominated or known.uid in self._echoes:
            self._compare(known, nominated, version)
        if known.node:
            self.set(known, "")

    def _compare(self, known: PodRecord, nominated: str, version: str) -> None:
        echo = self._echoes.setdefault(known.uid, Echo())
        before, echo.observed = echo.observed, nominated
        number = _number(version)
        echo.observed_at = echo.version if number is None else number  # versions are numbers on all known servers
        if nominated != before and not echo.patches and echo.observed_at >= echo.version:
            self.set(known, nominated)

    def removed(self, known: PodRecord) -> None:
        """The pod is deleted or has terminated."""
        self.set(known, "")
        self._echoes.pop(known.uid, None)
        self._stale.pop(known.uid, None)

    def node_added(self, name: str) -> None:
        """The rows of the pods that are nominated on the node can name it from now on."""
        for uid in self._by_node.get(name, ()):
            self._touch(uid)

    def node_removed(self, name: str) -> None:
        """Nominations on the node are over."""
        for known in list(self._by_node.get(name, {}).values()):
            self.withdraw(known)

    def withdraw(self, known: PodRecord) -> None:
        """Ends the nomination of a pending pod that cannot have the node for now; the leader writes that, see
        `take_stale`."""
        if self.set(known, ""):
            self._stale[known.uid] = known

    def take_stale(self) -> list[PodRecord]:
        """Pods whose nomination was withdrawn since the last call, and that have no other one: their status is to be
        written. Not by the watch, because only the leader writes."""
        stale = [known for known in self._stale.values() if not known.nominated]
        self._stale.clear()
        return stale


def _number(version: str) -> int | None:
    return int(version) if version.isdigit() else None
