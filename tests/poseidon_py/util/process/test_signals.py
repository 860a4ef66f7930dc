"""A terminal that is closed ends a command, unless it was started with nohup."""

import signal

from poseidon_py.util.process.signals import end_signals


def test_hangups_count_unless_they_are_ignored():
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        assert set(end_signals()) == {signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        assert set(end_signals()) == {signal.SIGTERM, signal.SIGINT}
    finally:
        signal.signal(signal.SIGHUP, before)
