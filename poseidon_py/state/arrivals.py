"""The order of pods and workloads that were created in one second, which is all that their objects tell: that of their
arrival, as in kube-scheduler's queue. After a restart it is the order of the list."""

_SECONDS = 1_000
"""Of so many seconds in which pods were created the number of pods is remembered."""
_WORKLOADS = 100_000
"""Of so many workloads the moment is remembered."""
_LAST = 999_999


class Arrivals:
    """Counts the pods of each second."""

    def __init__(self) -> None:
        self._number: dict[int, int] = {}
        self._of_workload: dict[str, int] = {}

    def moment(self, created_us: int) -> int:
        """The time of a new pod that was created in the second that begins at `created_us`, microseconds since the
        epoch: later than that of all pods of that second that came before it, and before the next second."""
        number = self._number.get(created_us, -1) + 1
        self._number[created_us] = number
        if len(self._number) > _SECONDS:
            del self._number[next(iter(self._number))]
        return created_us + min(number, _LAST)

    def moment_of(self, workload: str, created_us: int) -> int:
        """The same for the workload with a UID, whose pods come and go: the same time whenever it is asked for."""
        known = self._of_workload.get(workload)
        if known is None:
            known = self._of_workload[workload] = self.moment(created_us)
            if len(self._of_workload) > _WORKLOADS:
                del self._of_workload[next(iter(self._of_workload))]
        return known
