"""The transitions of jobs and tasks that wait in statuses until the hooks have stored them, so that none is lost.

A status is written together with notes of the transitions that lead to it. They are reported after that, and removed by
a later write once they are stored elsewhere. The process that continues after a stop reports what it finds noted.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace

import msgspec

from poseidon_py.jobs.manifests.owner import Owner
from poseidon_py.jobs.rules.noted import MAX_NOTED, Noted
from poseidon_py.jobs.rules.status import JobStatus
from poseidon_py.jobs.transitions import Transition, transition_of


@dataclass(slots=True)
class _Progress:
    """Numbers of the last transitions of a job that were passed on, and that are stored."""

    uid: str
    passed: int = 0
    stored: int = 0


class Outbox:
    """Of one term as the leader, between two calls of `clear`."""

    def __init__(self, report: Callable[[Transition], None]) -> None:
        """`report`: gets what is noted and was not passed on: by another process, or as an answer was lost."""
        self._report = report
        self._jobs: dict[tuple[str, str], _Progress] = {}

    def clear(self) -> None:
        """All that is noted is reported again."""
        self._jobs.clear()

    def note(self, owner: Owner, status: JobStatus, found: list[Noted]) -> tuple[list[Noted], JobStatus]:
        """The transitions with their numbers, and the status with notes of these and of those not stored yet."""
        first = max([status.transitions, *(each.number for each in status.noted)]) + 1
        numbered = [msgspec.structs.replace(each, number=number) for number, each in enumerate(found, first)]
        waiting = (*self.waiting(owner, status), *numbered)[-MAX_NOTED:]
        last = numbered[-1].number if numbered else status.transitions
        return numbered, replace(status, noted=waiting, transitions=last)

    def passed(self, owner: Owner, number: int) -> None:
        """All transitions up to this one were passed on."""
        progress = self._of((owner.namespace, owner.name), owner.uid)
        progress.passed = max(number, progress.passed)

    def stored(self, transition: Transition) -> None:
        """It is stored elsewhere, as are all of the job before it."""
        progress = self._of((transition.namespace, transition.job), transition.job_uid)
        progress.stored = max(transition.number, progress.stored)

    def repeat(self, owner: Owner, status: JobStatus) -> None:
        """Reports what is noted and was not passed on by this process."""
        for noted in status.noted:
            if noted.number > self._of((owner.namespace, owner.name), owner.uid).passed:
                self.passed(owner, noted.number)
                self._report(transition_of(owner, noted))

    def waiting(self, owner: Owner, status: JobStatus) -> tuple[Noted, ...]:
        """The notes of the status that are not stored yet."""
        stored = self._of((owner.namespace, owner.name), owner.uid).stored
        return tuple(each for each in status.noted if each.number > stored)

    def forget(self, key: tuple[str, str]) -> None:
        """The job is gone."""
        self._jobs.pop(key, None)

    def _of(self, key: tuple[str, str], uid: str) -> _Progress:
        found = self._jobs.get(key)
        if found is None or found.uid != uid:
            found = self._jobs[key] = _Progress(uid)
        return found
