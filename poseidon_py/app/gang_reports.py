"""Events and statuses about gangs, which only the leader publishes."""

import asyncio
import logging
from collections.abc import Callable, Collection

from poseidon_py.conventions.fields import NO_REMARKS
from poseidon_py.report.events import Reporter
from poseidon_py.report.pod_groups import StatusWriter
from poseidon_py.rounds.leadership import Leadership
from poseidon_py.state.gangs.group import Group
from poseidon_py.state.gangs.model import OwnerOrGroup, Resource
from poseidon_py.state.gangs.registry import LOOKUP_PENDING
from poseidon_py.state.records import PodRecord
from poseidon_py.state.store import Store

log = logging.getLogger(__name__)

_PROGRESS_SECONDS = 5.0
"""Seconds in which the progress of an owner is observed after the end of one of its pods."""


class GangReports:
    """Called by the gang registry, the gang binder and the reports on rounds."""

    def __init__(
        self,
        store: Store,
        reporter: Reporter,
        status: StatusWriter,
        leadership: Leadership,
        kind_of: Callable[[Resource], tuple[str, str]],
    ) -> None:
        """`kind_of`: API version and kind of the objects of a resource."""
        self._store = store
        self._reporter = reporter
        self._status = status
        self._leadership = leadership
        self._kind_of = kind_of
        self._remarked: dict[str, tuple[Resource, OwnerOrGroup]] = {}
        """Owners and groups of which something has no effect, by UID."""

    def object_changed(self, resource: Resource, entry: OwnerOrGroup, *, gone: bool) -> None:
        """Reports what an owner or a group declares without effect, each remark once."""
        before = self._remarked.pop(entry.uid, None)
        if gone or entry.remarks == NO_REMARKS:
            return
        self._remarked[entry.uid] = resource, entry
        published = before[1].remarks if before is not None else NO_REMARKS
        self._remark_on(resource, entry, published.reported + published.refused)

    def _remark_on(self, resource: Resource, entry: OwnerOrGroup, published: Collection[str] = ()) -> None:
        if not self._leadership.leads:
            return
        for text in entry.remarks.reported + entry.remarks.refused:
            if text not in published:
                self._reporter.remark_on_object(*self._kind_of(resource), entry.namespace, entry.name, entry.uid, text)

    def gang_blocked(self, known: PodRecord, why: str) -> None:
        """The pod cannot be sent to the engine because its gang is not defined."""
        if self._leadership.leads and not why.startswith(LOOKUP_PENDING):
            self._reporter.waits_for_gang(known, why)

    def waits_for_gang(self, known: PodRecord, message: str) -> None:
        """A round left the pod waiting for other members."""
        self._reporter.waits_for_gang(known, message)
        group = self._store.gangs.group_of(known)
        if group is not None:
            self._status.note(group)

    def invalid(self, known: PodRecord, what: str) -> None:
        self.remark(known, "GangInvalid", what)

    def remark(self, known: PodRecord, reason: str, message: str) -> None:
        if self._leadership.leads:
            self._reporter.remark(known, reason, message)

    def below_minimum(self, group: Group) -> None:
        """A complete gang has lost members and is below its minimum.

        Reported only if it still is a little later: when a member has finished, its owner's progress, which lowers the
        minimum, is observed after that.
        """
        asyncio.get_running_loop().call_later(_PROGRESS_SECONDS, self._below_minimum, group.id)

    def _below_minimum(self, gang_id: int) -> None:
        group = self._store.gangs.groups.get(gang_id)
        if group is None or group.complete or group.preempted or not group.assigned_to_us:
            return
        self._status.note(group, lasting=True)
        tally = group.tally()
        left = tally.bound
        has = "has" if tally.succeeded == 1 else "have"
        done = f", and {tally.succeeded} {has} succeeded" if tally.succeeded else ""
        message = f"pod group {group.name}: only {left} of at least {group.minimum} members are left{done}"
        if left:
            log.warning("%s", message)
        for uid in group.bound:
            known = self._store.pods.get(uid)
            if known is not None and known.observed.assigned_to_us:
                self.remark(known, "GangBelowMinimum", message)

    def lead(self) -> None:
        """Reports what was observed while another replica was the leader."""
        for resource, entry in list(self._remarked.values()):
            self._remark_on(resource, entry)
        for known in list(self._store.waiting()):
            if known.gang.blocked:
                self.gang_blocked(known, known.gang.blocked)
