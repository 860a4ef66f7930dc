"""The own flow service: started, started again, and ended; and the client that talks to it."""

import asyncio
import json
import logging
import os
import shutil
import signal
import sys

import pytest

import firmament_py.cli.logs
import poseidon_py.util.logs
from poseidon_py.app.engine_process import FirmamentError, Supervisor, _is_object
from poseidon_py.feed.client import EngineError, GrpcEngine
from protos.gen import flow_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.slow]


@pytest.fixture
async def started():
    """Makes supervisors, and stops them."""
    made = []

    async def make(**more):
        addresses: list[str] = []

        async def moved(address):
            addresses.append(address)

        supervisor = Supervisor(policy="", policy_options=(), moved=moved, **{"log_level": "warning", **more})
        made.append(supervisor)
        supervisor.addresses = addresses  # type: ignore[attr-defined]
        await supervisor.start()
        return supervisor

    yield make
    for supervisor in made:
        await supervisor.stop()


async def test_a_service_is_started_answers_and_is_ended(started):
    supervisor = await started()
    assert supervisor.addresses == [supervisor.address]
    engine = GrpcEngine(supervisor.address, 10)
    hello = await engine.hello()
    assert hello.policy

    async def nothing():
        yield flow_pb2.Update(complete=True)

    reply = await engine.resync(nothing())
    assert (await engine.apply(flow_pb2.Update(epoch=1))).status == flow_pb2.STALE_EPOCH
    assert (await engine.round(flow_pb2.RoundRequest(epoch=reply.epoch))).status == flow_pb2.CALL_OK
    assert not (await engine.explain(7)).found
    assert (await engine.status()).epoch == reply.epoch
    pid = supervisor.pid
    await supervisor.stop()
    assert supervisor._process.returncode == 0  # asked, not killed
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(EngineError) as caught:
        await engine.hello()
    assert caught.value.code == "UNAVAILABLE"
    await engine.close()
    with pytest.raises(EngineError):
        await engine.hello()


async def test_one_that_dies_is_started_again(started, caplog):
    supervisor = await started(sleep=lambda seconds: asyncio.sleep(0))
    running = asyncio.create_task(supervisor.run())
    os.kill(supervisor.pid, signal.SIGKILL)
    async with asyncio.timeout(30):
        while len(supervisor.addresses) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert "code -9" in caplog.text
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_one_is_started_again_after_somebody_cleaned_up_temporary_files(started, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    supervisor = await started()
    for left in tmp_path.iterdir():
        shutil.rmtree(left)
    os.kill(supervisor.pid, signal.SIGKILL)
    await supervisor._process.wait()
    await supervisor.start()
    assert len(supervisor.addresses) == 2
    assert list(tmp_path.iterdir()) == []


async def test_one_that_does_not_start_says_why_in_one_line(started):
    script = (
        "import sys; print('Usage: x', file=sys.stderr); print('Error: no such policy', file=sys.stderr); sys.exit(2)"
    )
    with pytest.raises(FirmamentError, match="the flow service ended: no such policy") as caught:
        await started(command=(sys.executable, "-c", script))
    assert caught.value.usage


async def test_one_that_never_serves_is_ended(started):
    with pytest.raises(FirmamentError, match="did not start within"):
        await started(command=(sys.executable, "-c", "import sys; sys.stdin.read()"), startup_timeout=0.2)


async def test_one_that_does_not_end_when_asked_is_killed(started, monkeypatch):
    monkeypatch.setattr("poseidon_py.app.engine_process._END_SECONDS", 0.1)
    script = (
        "import sys, time; from pathlib import Path; a = sys.argv; "
        "Path(a[a.index('--port-file') + 1]).write_text('1'); time.sleep(600)"
    )
    supervisor = await started(command=(sys.executable, "-c", script))
    pid = supervisor.pid
    await supervisor.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


def test_both_logs_have_the_same_keys():
    try:
        raise ValueError("ü")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "%d pods", (3,), sys.exc_info())
    ours, theirs = (
        json.loads(each.JsonFormatter().format(record)) for each in (poseidon_py.util.logs, firmament_py.cli.logs)
    )
    assert ours == theirs
    assert theirs["message"] == "3 pods"
    assert theirs["error"].endswith("ValueError: ü")


async def test_what_a_service_says_is_json_if_that_is_asked_for(started, capfd):
    supervisor = await started(log_level="info", log_format="json")
    await supervisor.stop()
    said = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert any(each["message"].startswith("serving on port") for each in said)


async def test_a_long_line_of_a_service_does_not_silence_it(started, capfd):
    script = (
        "import sys; from pathlib import Path; a = sys.argv; sys.stderr.write('x' * 200_000 + '\\nlast\\n'); "
        "Path(a[a.index('--port-file') + 1]).write_text('1'); sys.stdin.read()"
    )
    supervisor = await started(command=(sys.executable, "-c", script))
    await supervisor.stop()
    assert capfd.readouterr().err.endswith("x\nlast\n")


async def test_words_of_a_service_that_are_not_of_its_log_go_into_ours_beside_json(started, capfd, caplog):
    script = (
        "import sys; from pathlib import Path; a = sys.argv; print('a library', file=sys.stderr, flush=True); "
        "Path(a[a.index('--port-file') + 1]).write_text('1'); sys.stdin.read()"
    )
    supervisor = await started(command=(sys.executable, "-c", script), log_format="json")
    await supervisor.stop()
    assert "the flow service says: a library" in caplog.text
    assert "a library" not in capfd.readouterr().err


async def test_no_line_of_a_service_is_so_long_that_what_follows_stops_it(started, capfd):
    script = (
        "import sys; from pathlib import Path; a = sys.argv; Path(a[a.index('--port-file') + 1]).write_text('1'); "
        "sys.stderr.write('x' * 3_000_000 + '\\n' + 'y\\n' * 2_000_000 + 'last'); sys.stderr.flush(); sys.stdin.read()"
    )
    supervisor = await started(command=(sys.executable, "-c", script))
    async with asyncio.timeout(30):
        await supervisor.stop()
    assert supervisor._process.returncode == 0  # it could say all that it had to say
    said = capfd.readouterr().err
    assert said.startswith("x" * 1_000_000)
    assert said.endswith("x\n" + "y\n" * 2_000_000 + "last\n")


async def test_half_a_line_of_a_service_that_was_killed_is_not_taken_for_json(started, capfd, caplog):
    script = (
        """import sys; from pathlib import Path; a = sys.argv; sys.stderr.write('{"message": "ha'); """
        "sys.stderr.flush(); Path(a[a.index('--port-file') + 1]).write_text('1'); sys.stdin.read()"
    )
    supervisor = await started(command=(sys.executable, "-c", script), log_format="json")
    await supervisor.stop()
    assert 'the flow service says: {"message": "ha' in caplog.text
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "whole"), [('{"a": 1}', True), ("[1]", False), ('{"a', False), ('{"a": ' + "[" * 5000, False)]
)
def test_only_a_whole_json_object_is_a_line_of_the_services_log(line, whole):
    assert _is_object(line) is whole
