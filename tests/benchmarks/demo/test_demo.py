"""`poseidon demo` as a command: exit codes, output and cleaning up."""

import io
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner
from rich.console import Console

from benchmarks.demo import cli, scenario, show
from benchmarks.demo.checks import Check
from benchmarks.demo.children import ChildError
from benchmarks.demo.progress import Progress, Seen
from benchmarks.demo.summary import summarise
from poseidon_py.util.process.signals import end_signals
from tests.benchmarks.demo.builders import make_evidence, make_node, make_pod
from tests.paths import DOCS

COMMAND = [sys.executable, "-c", "from benchmarks.demo.cli import demo; demo()"]


def summary(ok=True, usage=None, groups=()):
    pods = [make_pod("a", "n1"), make_pod("w", cpu="100")]
    checks = [Check("sound", True, "fine"), Check("no node is over-committed", ok, "n1 in cpu")]
    network = {"vertices": 3, "arcs": 2}
    progress = Progress(None, "poseidon")  # type: ignore[arg-type]  # it will not watch
    progress.pods = {"a": Seen("service", 0.0, bound_at=1.0), "w": Seen("impossible", 0.0)}
    return summarise(
        make_evidence(pods, [make_node()]),
        progress,
        checks,
        {"victims": len(groups), "preemptors": 1, "lost_seconds": 12.34, "groups": list(groups)},
        {"moved": 0, "served": 0, "decided": 0, "needed": 0, "groups": []},
        network,
        seconds=1.0,
        scheduler="poseidon",
        policy="p",
        usage=usage or {},
        seed=0,
    )


@pytest.fixture
def outcome(monkeypatch):
    """Sets the outcome of the demo, without running it."""

    def decide(result):
        async def run(stack, plan, display):
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(scenario, "run", run)

    return decide


def test_all_checks_passed(outcome):
    outcome(summary())
    done = CliRunner().invoke(cli.demo, [])
    assert done.exit_code == 0
    assert "2 of 2 checks passed" in done.output
    assert "0/1 nodes are available" in done.output


def test_a_failed_check_fails_the_demo(outcome):
    outcome(summary(ok=False))
    done = CliRunner().invoke(cli.demo, [])
    assert done.exit_code == 1
    assert "FAIL  no node is over-committed" in done.output
    (line,) = (line for line in done.stderr.splitlines() if "the logs of all processes are in " in line)
    shutil.rmtree(line.rpartition(" ")[2])  # it is there
    failed = CliRunner().invoke(cli.demo, ["--json"])
    assert failed.exit_code == 1
    shutil.rmtree(failed.stderr.strip().rpartition(" ")[2])


def test_json_is_all_that_is_printed(outcome):
    outcome(summary())
    done = CliRunner().invoke(cli.demo, ["--json"])
    report = json.loads(done.output)
    assert report["result"] == "passed"
    assert (report["pods"], report["bound"], report["waiting"]) == (2, 1, 1)
    assert report["reasons"][0]["pods"] == 1
    assert [check["ok"] for check in report["checks"]] == [True, True]


def test_measured_usage_is_shown_if_there_is_any(outcome):
    outcome(summary())
    assert "Measured usage" not in CliRunner().invoke(cli.demo, []).output
    figures = {"basis": "larger", "taken": 1234, "refused": 0, "pods_measured": 9, "nodes_measured": 2}
    outcome(summary(usage={**figures, "pods_priced": 8}))
    output = " ".join(CliRunner().invoke(cli.demo, ["--usage", "larger"]).output.split())
    assert "costs from larger; 1,234 samples accepted, 0 refused; at most 9 pods and 2 nodes measured" in output
    assert "8 pods of a round with costs from measured usage" in output


def test_preemptions_are_shown_if_there_were_any(outcome):
    outcome(summary())
    assert "Preemption" not in CliRunner().invoke(cli.demo, []).output
    names = ("victim_class", "victim_owner", "preemptor_class", "preemptor_owner")
    outcome(summary(groups=[dict(zip(names, ("", "", "urgent", "ReplicaSet"), strict=True)) | {"victims": 1}]))
    output = CliRunner().invoke(cli.demo, []).output
    assert "1  pods of no class (no owner) for pods of urgent (ReplicaSet)" in output
    assert "1 pods were preempted by 1; they had been on their nodes for 12.3 seconds together" in output


@pytest.mark.parametrize("width", [40, 60, 80])
def test_no_word_is_split_in_a_narrow_terminal(outcome, width):
    outcome(summary())
    output = CliRunner().invoke(cli.demo, [], env={"COLUMNS": str(width)}).output
    for word in ("submitted", "waiting", "requested", "offered", "memory"):
        assert word in output
    assert "…" not in output


@pytest.mark.parametrize("width", [20, 60, 120])
def test_the_live_table_fits_the_terminal(width):
    progress = Progress(None, "poseidon")  # type: ignore[arg-type]  # it will not watch
    progress.pods = {str(i): Seen(kind, 0.0) for i, kind in enumerate(("impossible", "service"))}
    console = Console(width=width, record=True, file=io.StringIO())
    console.print(show._panel(progress, 2, "", width))
    lines = console.export_text().splitlines()
    assert max(map(len, lines)) <= width
    assert lines[-1].split() == ["2", "of", "2", "pods"]
    assert any("submitted" in line for line in lines) is (width > 20)


def test_the_documentation_describes_the_json():
    described = (DOCS / "demo.md").read_text()
    for key in summary().json():
        assert f"`{key}`" in described, f"docs/demo.md does not describe {key}"


def test_a_process_that_does_not_start_is_one_line_and_exit_code_2(outcome):
    outcome(ChildError("the scheduler exited with code 1"))
    done = CliRunner().invoke(cli.demo, [])
    assert done.exit_code == 2
    shutil.rmtree(done.stderr.splitlines()[0].rpartition(" ")[2])
    assert "error: the scheduler exited with code 1" in done.output


def environment(folder):
    return {**os.environ, "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(sys.path)}


def descendants(pid):
    """Pids of all processes below `pid`."""
    below: dict[int, list[int]] = {}
    found: list[int] = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue  # it has just ended
        below.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    todo = [pid]
    while todo:
        children = below.get(todo.pop(), [])
        found += children
        todo += children
    return found


@pytest.mark.e2e
def test_the_demo_passes_its_checks_and_cleans_up(tmp_path):
    done = subprocess.run(
        [*COMMAND, "--nodes", "20", "--pods", "150", "--json", "--usage", "larger", "--policy", "cpu-memory"],
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    report = json.loads(done.stdout)
    assert report["result"] == "passed"
    groups = report["preemption"]["groups"]
    removed = sum(group["victims"] for group in groups if not group["victim_owner"])  # bare pods
    assert report["pods"] == 150 - removed
    assert report["waiting"] > 0
    assert report["bound"] + report["waiting"] == report["pods"]
    assert report["kinds"]["urgent"]["bound"] == 3
    assert sum(group["victims"] for group in groups) == report["preemption"]["victims"]
    assert report["kinds"]["impossible"]["bound"] == 0
    assert report["usage"]["basis"] == "larger"
    assert (report["usage"]["nodes_measured"], report["usage"]["refused"]) == (20, 0)
    assert report["usage"]["pods_measured"] > 0
    assert list(tmp_path.iterdir()) == []


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")
@pytest.mark.parametrize("number", [number for number in end_signals() if number != signal.SIGTERM])
def test_an_interrupted_demo_leaves_nothing_behind(tmp_path, number):
    process = subprocess.Popen(
        [*COMMAND, "--nodes", "5", "--pods", "40"],
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while len(started := descendants(process.pid)) < 3:  # cluster, bridge, its service
            assert time.monotonic() < deadline, "the demo did not start its processes"
            assert process.poll() is None, process.communicate()[0]
            time.sleep(0.05)
        process.send_signal(number)
        output, _ = process.communicate(timeout=40)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, output
    assert "Traceback" not in output
    assert not [pid for pid in started if Path(f"/proc/{pid}").exists()]
    assert list(tmp_path.iterdir()) == []
