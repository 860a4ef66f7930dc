"""Processes are stopped by their own pid, and the end of their output is reported."""

import asyncio
import os
import subprocess
import sys
import time

import pytest

from benchmarks.demo.children import Child, ChildError, environment

pytestmark = pytest.mark.slow

SLEEPER = "import time\nprint('up', flush=True)\ntime.sleep(600)\n"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + SLEEPER
PARENT = """
import asyncio, pathlib, sys
from benchmarks.demo.children import Child

async def main(folder):
    child = Child("the program", ["program"], folder / "log")
    await child.start()
    (folder / "pid.partial").write_text(str(child.pid))
    (folder / "pid.partial").rename(folder / "pid")
    await asyncio.sleep(600)

asyncio.run(main(pathlib.Path(sys.argv[1])))
"""
BROKEN = "import sys\nsys.exit('no luck today')\n"


@pytest.fixture
def program(tmp_path, monkeypatch):
    """A Child that runs this source code."""
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))

    def make(text):
        (tmp_path / "program.py").write_text(text)
        return Child("the program", ["program"], tmp_path / "log")

    return make


def alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def test_a_child_has_exited_after_stop(program, tmp_path):
    child = program(SLEEPER)
    await child.start()
    await child.until(lambda: "up" in (tmp_path / "log").read_text(), 30.0)
    assert child.running
    await child.stop()
    assert not alive(child.pid)
    await child.stop()  # harmless


async def test_a_child_that_ignores_sigterm_is_killed(program, tmp_path):
    child = program(STUBBORN)
    await child.start()
    await child.until(lambda: "up" in (tmp_path / "log").read_text(), 30.0)
    await child.stop(seconds=0.2)
    assert not alive(child.pid)


async def test_the_output_of_a_failed_child_is_in_the_error(program):
    child = program(BROKEN)
    await child.start()
    with pytest.raises(ChildError, match=r"the program exited with code 1:\n  no luck today"):
        await child.until(lambda: False, 30.0)


async def test_a_child_that_is_not_ready_in_time_is_an_error(program):
    child = program(SLEEPER)
    await child.start()
    try:
        with pytest.raises(ChildError, match="was not ready within 0 s"):
            await child.until(lambda: False, 0.0)
    finally:
        await child.stop()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ends children with their parent")
def test_a_child_does_not_outlive_a_parent_that_is_killed(tmp_path, monkeypatch):
    (tmp_path / "program.py").write_text(SLEEPER)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *sys.path]))
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)])
    try:
        wait_until((tmp_path / "pid").exists)
        child = int((tmp_path / "pid").read_text())
        assert alive(child)
    finally:
        parent.kill()
        parent.wait()
    wait_until(lambda: not alive(child))


def wait_until(holds, seconds=30.0):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not come true"
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("own", "tunables"),
    [
        ({}, "glibc.malloc.hugetlb=1"),
        ({"GLIBC_TUNABLES": "glibc.malloc.check=1"}, "glibc.malloc.check=1:glibc.malloc.hugetlb=1"),
        ({"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}, "glibc.malloc.hugetlb=0"),
    ],
    ids=["nothing said", "something else said", "said otherwise"],
)
def test_children_use_large_pages_unless_configured_otherwise(own, tunables):
    assert environment({"HOME": "/home", **own}) == {"HOME": "/home", "GLIBC_TUNABLES": tunables}


def test_a_child_is_started_with_that_environment(program, monkeypatch):
    monkeypatch.setenv("ALSO", "this")
    child = program("import os\nprint(os.environ['GLIBC_TUNABLES'], os.environ['ALSO'])\n")

    async def run():
        await child.start()
        with pytest.raises(ChildError):
            await child.until(lambda: False, 30)

    asyncio.run(run())
    assert child.output_tail().split() == [":", "glibc.malloc.hugetlb=1", "this"]
