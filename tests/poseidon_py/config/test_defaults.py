"""A default that a constructor repeats is that of the setting: one had drifted, 500 events a second for 1,000."""

import inspect

import pytest

from poseidon_py.app.engine_process import Supervisor
from poseidon_py.bind.binder import Binder
from poseidon_py.bind.gang_binder import GangBinder
from poseidon_py.bind.volumes import VolumeBinder
from poseidon_py.config.settings import Settings
from poseidon_py.feed.workers import Feed
from poseidon_py.kube.client import Kube
from poseidon_py.kube.lease import Election
from poseidon_py.preempt.drainer import Drainer
from poseidon_py.preempt.evictor import Evictor
from poseidon_py.preempt.migrator import Migrator
from poseidon_py.preempt.nominator import Nominator
from poseidon_py.preempt.preemptor import Preemptor
from poseidon_py.report.events import Reporter
from poseidon_py.rounds.pacer import Pacer
from poseidon_py.tracking.tracker import Tracker

REPEATED = [
    (Binder, "concurrency", "bind_concurrency"),
    (Binder, "patience", "bind_patience"),
    (Binder, "timeout", "bind_timeout"),
    (Drainer, "rate", "queue_drain_rate"),
    (Election, "lease_duration", "lease_duration"),
    (Election, "renew_deadline", "renew_deadline"),
    (Election, "retry_period", "retry_period"),
    (Evictor, "patience", "bind_patience"),
    (Feed, "batch_size", "batch_size"),
    (GangBinder, "timeout", "gang_timeout"),
    (Kube, "concurrency", "bind_concurrency"),
    (Migrator, "patience", "bind_patience"),
    (Nominator, "patience", "bind_patience"),
    (Pacer, "window", "batch_window"),
    (Pacer, "window_max", "batch_window_max"),
    (Preemptor, "patience", "bind_patience"),
    (Reporter, "concurrency", "event_concurrency"),
    (Reporter, "rate", "event_rate"),
    (Supervisor, "startup_timeout", "startup_timeout"),
    (Tracker, "keep_jobs", "ended_jobs"),
    (Tracker, "keep_seconds", "ended_jobs_seconds"),
    (VolumeBinder, "timeout", "volume_timeout"),
]


@pytest.mark.parametrize(("part", "parameter", "setting"), REPEATED)
def test_the_default_of_a_part_is_that_of_its_setting(part, parameter, setting):
    assert inspect.signature(part).parameters[parameter].default == getattr(Settings(), setting)


def test_a_leader_is_elected_unless_somebody_says_otherwise():
    """The README's two commands, one inside of the cluster and one outside, placed pods beside each other."""
    assert Settings().leader_elect is True
    assert (Settings().lease_namespace, Settings().lease_name) == ("kube-system", "poseidon")  # one lease for both
