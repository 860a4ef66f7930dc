"""The signals that ask a command to end."""

import signal

INTERRUPTED = 130
"""Exit code of a command that Ctrl-C has ended, as shells have it: 128 and the signal's number."""


def end_signals() -> tuple[signal.Signals, ...]:
    """SIGTERM, SIGINT, and SIGHUP, which a terminal sends when it is closed, unless that is ignored, as under nohup."""
    ignored = signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    return (signal.SIGTERM, signal.SIGINT) if ignored else (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
