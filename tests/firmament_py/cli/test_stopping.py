"""A signal stops the service at whatever instruction it interrupts the main thread."""

import subprocess
import sys

import pytest

# Raises SIGTERM before the given line of what `wait` calls, or else from another thread during the wait.
_PROGRAM = """
import signal, sys, threading
from firmament_py.cli.stopping import Stopping

stopping, left = Stopping(), int(sys.argv[1])
threading.Timer(1, signal.pthread_kill, (threading.main_thread().ident, signal.SIGTERM)).start()

def trace(frame, event, _):
    global left
    if frame.f_code.co_name in ("<lambda>", "put", "set"):
        return None
    if event == "line":
        left -= 1
        if left == 0:
            sys.settrace(None)
            signal.raise_signal(signal.SIGTERM)
    return trace

sys.settrace(trace)
stopping.wait()
sys.settrace(None)
print("stopped")
"""


@pytest.mark.slow
@pytest.mark.parametrize("line", [1, 2, 3, 5, 8])
def test_a_signal_ends_the_wait_whichever_line_it_interrupts(line):
    command = [sys.executable, "-c", _PROGRAM, str(line)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "stopped\n"


@pytest.mark.slow
def test_the_end_of_input_ends_the_wait():
    program = "from firmament_py.cli.stopping import Stopping\nstop = Stopping()\nstop.watch_input()\nstop.wait()"
    with subprocess.Popen([sys.executable, "-c", program], stdin=subprocess.PIPE) as waiting:
        with pytest.raises(subprocess.TimeoutExpired):
            waiting.wait(0.5)
        waiting.communicate(timeout=60)
    assert waiting.returncode == 0
