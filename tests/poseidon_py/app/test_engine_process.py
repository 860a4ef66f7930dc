"""The supervised flow service: started, restarted and stopped; and its client."""

import asyncio
import io
import json
import logging
import os
import shutil
import signal
import stat
import sys
from collections import Counter
from pathlib import Path

import pytest

import firmament_py.cli.logs
import poseidon_py.util.logs
from poseidon_py.app.engine_process import FirmamentError, Supervisor, _is_object
from poseidon_py.feed.client import EngineClient, EngineError
from protos.gen import flow_pb2

pytestmark = [pytest.mark.e2e, pytest.mark.slow]

SERVE = """
import sys
from types import SimpleNamespace
from firmament_py.service.calls.registry import Service, service_of
from firmament_py.service.direct.server import DirectServer
from protos.gen import flow_pb2
def serve():
    contract = flow_pb2.DESCRIPTOR.services_by_name["FlowScheduler"]
    nothing = SimpleNamespace(**dict.fromkeys(contract.methods_by_name, lambda *_: flow_pb2.HelloReply()))
    server = DirectServer(service_of(contract, nothing), sys.argv[sys.argv.index("--address") + 1][len("direct:"):])
    server.start()
    return server
"""


def service(text):
    """The command of a service with this code; `serve()` makes it answer Hello."""
    return (sys.executable, "-c", f"{SERVE}\n{text}")


@pytest.fixture
async def started():
    """Makes supervisors, and stops them."""
    made = []

    async def make(**fields):
        addresses: list[str] = []

        async def moved(address):
            addresses.append(address)

        supervisor = Supervisor(policy="", policy_options=(), moved=moved, **{"log_level": "warning", **fields})
        made.append(supervisor)
        supervisor.addresses = addresses  # type: ignore[attr-defined]
        await supervisor.start()
        return supervisor

    yield make
    for supervisor in made:
        await supervisor.stop()


async def test_a_service_is_started_answers_and_is_stopped(started):
    supervisor = await started()
    assert supervisor.addresses == [supervisor.address]
    engine = EngineClient(supervisor.address, 10)
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


async def test_a_service_that_exits_is_restarted(started, caplog):
    supervisor = await started(sleep=lambda seconds: asyncio.sleep(0))
    running = asyncio.create_task(supervisor.run())
    os.kill(supervisor.pid, signal.SIGKILL)
    async with asyncio.timeout(60):
        while len(supervisor.addresses) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.02)
    assert "was killed by SIGKILL; restart in" in caplog.text
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def test_a_service_that_exits_during_its_start_is_restarted(started, caplog, tmp_path):
    (tmp_path / "left").write_text("kk1")  # it is killed twice, exits once, then serves
    supervisor = await started(
        command=service(
            f"""
import os, signal
from pathlib import Path
left = Path({str(tmp_path / "left")!r})
first, rest = left.read_text()[:1], left.read_text()[1:]
left.write_text(rest)
if first == "k":
    os.kill(os.getpid(), signal.SIGKILL)
if first == "1":
    sys.exit("no memory")
kept = serve()
sys.stdin.read()"""
        ),
        sleep=lambda seconds: asyncio.sleep(0),
    )
    assert supervisor.addresses == [supervisor.address]
    assert caplog.text.count("the flow service was killed by SIGKILL: without an error message; retry in") == 2
    assert caplog.text.count("the flow service exited with code 1: no memory; retry in") == 1


def listening_ports(pid):
    """The listening TCP sockets of a process, by inode."""
    listening = set()
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        rows = [line.split() for line in Path(table).read_text().splitlines()[1:]]
        listening |= {row[9] for row in rows if row[3] == "0A"}
    opened = {os.readlink(file) for file in Path(f"/proc/{pid}/fd").iterdir() if file.is_symlink()}
    return {inode for inode in listening if f"socket:[{inode}]" in opened}


needs_proc = pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="looks into /proc")


@needs_proc
async def test_only_its_owner_can_reach_a_service(started, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    supervisor = await started()
    path = supervisor.address.removeprefix("direct:")
    assert stat.S_ISSOCK(os.stat(path).st_mode)
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert listening_ports(supervisor.pid) == set()
    await supervisor.stop()
    assert list(tmp_path.iterdir()) == []


@needs_proc
async def test_statistics_are_served_on_a_port_on_request(started):
    supervisor = await started(extra_args=("--stats-address", "127.0.0.1:0"))
    assert len(listening_ports(supervisor.pid)) == 1


async def test_a_folder_whose_path_is_too_long_for_a_socket_is_named(started, tmp_path, monkeypatch):
    long = tmp_path / ("x" * 100)
    long.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(long))
    with pytest.raises(FirmamentError, match="has more than 107 bytes; set TMPDIR to a shorter one") as caught:
        await started()
    assert caught.value.usage
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "missing"))
    with pytest.raises(FirmamentError, match="set TMPDIR to a writable folder"):
        await started()


async def test_a_service_is_restarted_after_temporary_files_were_removed(started, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    supervisor = await started()
    for left in tmp_path.iterdir():
        shutil.rmtree(left)
    engine = EngineClient(supervisor.address, 10)
    with pytest.raises(EngineError):
        await engine.hello()  # a new client cannot find it
    await engine.close()
    os.kill(supervisor.pid, signal.SIGKILL)
    await supervisor._process.wait()
    await supervisor.start()
    assert len(supervisor.addresses) == 2
    await supervisor.stop()
    assert list(tmp_path.iterdir()) == []


async def test_the_failure_of_a_start_is_one_line_that_names_the_cause(started):
    script = (
        "import sys; print('Usage: x', file=sys.stderr); print('Error: no such policy', file=sys.stderr); sys.exit(2)"
    )
    with pytest.raises(FirmamentError, match="the flow service exited with code 2: no such policy") as caught:
        await started(command=(sys.executable, "-c", script))
    assert caught.value.usage


async def test_a_service_that_never_serves_is_stopped(started):
    with pytest.raises(FirmamentError, match=r"did not start within 0\.2 s"):
        await started(command=(sys.executable, "-c", "import sys; sys.stdin.read()"), startup_timeout=0.2)


async def test_a_service_that_never_serves_is_reported_with_its_last_output(started):
    with pytest.raises(FirmamentError, match="the flow service exited with code 3: without an error message"):
        await started(command=(sys.executable, "-c", "import sys; sys.exit(3)"), startup_timeout=0.1)


async def test_a_missing_command_is_named(started):
    with pytest.raises(FirmamentError, match="cannot start the flow service as /not/there: "):
        await started(command=("/not/there",), startup_timeout=0.1)


async def test_a_service_that_ignores_its_stop_is_killed(started, monkeypatch):
    monkeypatch.setattr("poseidon_py.app.engine_process._END_SECONDS", 0.1)
    supervisor = await started(command=service("import time; kept = serve(); time.sleep(600)"))
    pid = supervisor.pid
    await supervisor.stop()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_no_python_code_runs_in_a_service_before_its_program(started):
    """What runs between the fork and the program may wait forever for a lock of another thread, and this process with
    it."""
    starting = True
    os.register_at_fork(after_in_child=lambda: os._exit(77) if starting else None)
    try:
        await started(command=service("kept = serve(); sys.stdin.read()"), startup_timeout=20)
    finally:
        starting = False


def test_both_logs_have_the_same_keys():
    try:
        raise ValueError("ü")
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, __file__, 1, "%d pods", (3,), sys.exc_info())
    mine, theirs = (
        json.loads(each.JsonFormatter().format(record)) for each in (poseidon_py.util.logs, firmament_py.cli.logs)
    )
    assert mine == theirs
    assert theirs["message"] == "3 pods"
    assert theirs["error"].endswith("ValueError: ü")


async def test_output_of_a_service_is_json_on_request(started, capfd):
    supervisor = await started(log_level="info", log_format="json")
    await supervisor.stop()
    message = [json.loads(line) for line in capfd.readouterr().err.splitlines()]
    assert any(each["message"].startswith("serving on direct:") for each in message)


async def test_a_long_line_of_a_service_does_not_stop_its_output(started, monkeypatch):
    message = io.StringIO()
    monkeypatch.setattr(sys, "stderr", message)
    supervisor = await started(
        command=service("sys.stderr.write('x' * 200_000 + '\\nlast\\n'); kept = serve(); sys.stdin.read()")
    )
    await supervisor.stop()
    assert [(set(line), len(line)) for line in message.getvalue().splitlines()] == [({"x"}, 200_000), (set("last"), 4)]


async def test_with_json_other_output_of_a_service_is_logged_here(started, capfd, caplog):
    supervisor = await started(
        command=service("print('a library', file=sys.stderr, flush=True); kept = serve(); sys.stdin.read()"),
        log_format="json",
    )
    await supervisor.stop()
    assert "output of the flow service: a library" in caplog.text
    assert "a library" not in capfd.readouterr().err


async def test_output_after_a_long_line_does_not_block_a_service(started, monkeypatch):
    """The rest is more than the capacity of a pipe, and is written while the service is being stopped."""
    message = io.StringIO()
    monkeypatch.setattr(sys, "stderr", message)
    monkeypatch.setattr("poseidon_py.app.engine_process._LINE_BYTES", 4096)
    monkeypatch.setattr("poseidon_py.app.engine_process._END_SECONDS", 60.0)
    supervisor = await started(
        command=service(
            "kept = serve(); sys.stdin.read(); "
            "sys.stderr.write('x' * 20_000 + '\\n' + 'y\\n' * 100_000 + 'last'); sys.stderr.flush()"
        )
    )
    await supervisor.stop()
    assert supervisor._process.returncode == 0  # it could say all that it had to say
    first, *others = message.getvalue().splitlines()
    assert (set(first), len(first) >= 4096) == ({"x"}, True)
    assert Counter(others) == {"y": 100_000, "last": 1}
    assert others[-1] == "last"


async def test_a_partial_line_of_a_killed_service_is_not_copied_as_json(started, capfd, caplog):
    supervisor = await started(
        command=service(
            """sys.stderr.write('{"message": "ha'); sys.stderr.flush(); kept = serve(); sys.stdin.read()"""
        ),
        log_format="json",
    )
    await supervisor.stop()
    assert 'output of the flow service: {"message": "ha' in caplog.text
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("line", "whole"), [('{"a": 1}', True), ("[1]", False), ('{"a', False), ('{"a": ' + "[" * 5000, False)]
)
def test_only_a_complete_json_object_is_copied_as_a_log_line(line, whole):
    assert _is_object(line) is whole
