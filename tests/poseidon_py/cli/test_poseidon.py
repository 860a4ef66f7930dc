"""The `poseidon` command: one clear line for each error, and its exit codes."""

import io
import json
import os
import platform
import signal
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from types import ModuleType
from typing import Any, ClassVar

import click
import pytest
from click.shell_completion import ShellComplete

from benchmarks.__main__ import cli as bench
from firmament_py.cli.main import cli as firmament
from poseidon_py import __version__
from poseidon_py.__main__ import main
from poseidon_py.cli.main import LazyGroup, cli
from poseidon_py.config.fields import FIELDS, number_text
from poseidon_py.config.layout import HEADINGS
from poseidon_py.config.reference import page
from poseidon_py.util.process.child_process import PYTHON
from poseidon_py.util.process.signals import INTERRUPTED
from tests.command_line import invoke
from tests.paths import DOCS

CONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
"""


@pytest.fixture
def kubeconfig(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(CONFIG)
    return str(file)


def run(*arguments):
    return invoke(cli, *arguments)


def process(*arguments, folder=None):
    """`folder`: the present one."""
    return subprocess.run(
        [sys.executable, "-P", "-m", "poseidon_py", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_help_names_all_commands():
    out = run("--help").output
    for command in (
        "run",
        "cluster",
        "demo",
        "status",
        "devices",
        "explain",
        "fits",
        "what-if",
        "network",
        "gangs",
        "queue",
        "queues",
        "policies",
    ):
        assert command in out


def test_the_commands_are_under_headings_the_shortest_list_first():
    lines = run("--help").output.splitlines()
    lists: dict[str, list[str]] = {}
    for line in lines:
        if line.endswith(":") and not line.startswith(" "):
            listed = lists.setdefault(line.removesuffix(":"), [])
        elif line.startswith("  ") and not line.startswith("   ") and lists:
            listed.append(line.split()[0])
    del lists["Options"]
    assert list(lists) == ["Change", "Run", "Set up", "Ask a running scheduler"]
    assert list(map(len, lists.values())) == [2, 3, 3, 11]
    assert sorted(name for names in lists.values() for name in names) == sorted(LazyGroup.modules)


def run_flags():
    command = cli.get_command(click.Context(cli), "run")
    assert command is not None
    return {parameter.name: parameter for parameter in command.params if parameter.name != "config"}


def test_help_has_a_short_flag():
    for command, arguments in [(cli, ["fits"]), (cli, ["jobs", "run"]), (firmament, ["serve"])]:
        short, long = (invoke(command, *arguments, flag).output for flag in ("-h", "--help"))
        assert short == long
        assert short.startswith("Usage: ")


def test_the_flags_of_run_are_under_headings():
    """70 flags in one list are not read."""
    lines = run("run", "--help").output.splitlines()
    headings = [line.removesuffix(":") for line in lines if line.endswith(":") and not line.startswith(" ")]
    assert set(headings) == {"Options", *(name for section, name in HEADINGS.items() if section != "watches")}
    sections: dict[str, list[str]] = {}
    for line in lines:
        if line.removesuffix(":") in headings:
            heading = line.removesuffix(":")
        elif line.startswith("  --") and not line.startswith("  --help"):
            sections.setdefault(heading, []).append(line.split()[0])
    assert "--queue-drain-rate" in sections["Queues"]
    assert sections["Options"] == ["--config"]
    lengths = [len(sections[heading]) for heading in headings if heading != "Options"]
    assert lengths == sorted(lengths), "the shortest list is first"
    assert sum(map(len, sections.values())) == len(run_flags()) + 1
    assert max(map(len, sections.values())) <= 10


def test_every_setting_is_documented():
    assert (DOCS / "configuration.md").read_text() == page(), "python -m poseidon_py.config.reference renews it"
    flags = run_flags()
    for name, field in FIELDS.items():
        assert field.text.endswith(".")
        assert (name in flags) == field.is_flag


def test_flags_keep_their_names():
    """Every flag of any release: manifests name them."""
    assert set(run_flags()) >= {
        "kubeconfig", "context", "scheduler_name", "policy", "policy_option", "usage", "usage_samples",
        "usage_half_life", "usage_stale", "usage_interval", "prometheus_url", "prometheus_token_file", "prometheus_ca",
        "bandwidth", "link_bandwidth", "firmament_address", "firmament_ca_file", "firmament_cert_file",
        "firmament_key_file", "firmament_insecure",
        "leader_elect", "lease_name", "lease_namespace", "lease_duration", "renew_deadline", "retry_period",
        "health_address", "health_port", "added_node_affinity", "gang_timeout", "gang_reserve_after", "gang_unwind",
        "bind_concurrency", "batch_window", "batch_window_max", "event_rate", "startup_timeout", "shutdown_timeout",
        "improve",
        "log_level", "log_format",
    }  # fmt: skip


@pytest.mark.parametrize(
    "command", ["", "run", "status", "explain", "fits", "what-if", "network", "gangs", "queues", "policies"]
)
def test_the_help_fits_a_terminal_of_80_columns(command):
    lines = run(*command.split(), "--help").output.splitlines()
    assert len(lines) > 5
    assert [line for line in lines if len(line) > 80] == []


def test_the_defaults_of_the_flow_service_are_shown_as_it_has_them():
    command = firmament.get_command(click.Context(firmament), "serve")
    assert command is not None
    served = {parameter.name: parameter.default for parameter in command.params}
    names = {"usage": "usage_basis", "gang_reserve_after": "reserve_after"}
    for name in ("usage", "usage_samples", "usage_half_life", "usage_stale", "gang_reserve_after", "improve"):
        default = served[names.get(name, name)]
        assert FIELDS[name].shown_default == (number_text(default) if isinstance(default, float) else str(default))


@pytest.mark.slow
def test_a_command_imports_only_its_own_libraries():
    others = {"aiohttp", "grpc", "benchmarks", "rich", "importlib.metadata"}
    code = f"import sys, poseidon_py.cli.main; print({others} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "set()\n"


def test_a_command_that_is_not_installed_names_the_package(monkeypatch):
    monkeypatch.setitem(LazyGroup.modules, "demo", ("benchmarks.not_there", ""))
    result = run("demo", "--nodes", "5")
    assert result.exit_code == 1
    assert "there is no module benchmarks.not_there" in result.output
    assert "`pip install '.[benchmarks]'`" in result.output
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name != "orjson")
    lines = [line.split(maxsplit=1) for line in run("--help").output.splitlines() if line.strip()]
    assert [name for name, *about in lines if about == ["(needs the extra `benchmarks`)"]] == ["cluster", "demo"]


def test_the_list_of_commands_says_what_their_help_says():
    for name, (_, summary) in LazyGroup.modules.items():
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        assert f"{command.get_short_help_str(500)}.".startswith(summary.removesuffix(".")), name


@pytest.mark.slow
def test_the_list_of_commands_imports_none_of_them():
    code = "import sys; from poseidon_py.cli.main import cli; cli(['--help'], standalone_mode=False); "
    code += "print({'aiohttp', 'grpc', 'benchmarks', 'orjson', 'rich', 'yaml'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_an_interrupted_command_exits_with_130(monkeypatch):
    """As shells have it, also while modules are loaded; there is no traceback."""

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("poseidon_py.cli.ask.answer", interrupted)
    result = run("status")
    assert (result.exit_code, result.output) == (INTERRUPTED, "")
    loading = ModuleType("loading")
    loading.__getattr__ = interrupted  # type: ignore[method-assign]
    monkeypatch.setitem(sys.modules, "poseidon_py.cli.main", loading)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(SystemExit) as end:
        main()
    assert end.value.code == INTERRUPTED == 130
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize(
    ("command", "name", "says"),
    [
        (cli, "stauts", "there is no command 'stauts'; did you mean status?"),
        (cli, "polices", "there is no command 'polices'; did you mean policies?"),
        (cli, "xyzzy", "there is no command 'xyzzy'; `cli --help` lists them"),
        (bench, "comapre", "there is no command 'comapre'; did you mean compare?"),
    ],
)
def test_a_mistyped_command_has_a_suggestion(command, name, says):
    result = invoke(command, name)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: {says}"


def test_piped_lines_are_not_padded(monkeypatch):
    """A console without a width would pad them to it."""
    monkeypatch.delenv("COLUMNS", raising=False)
    lines = invoke(bench, "list", "-v").output.splitlines()
    assert [line for line in lines if line != line.rstrip()] == []
    assert len(lines) > 50


def test_each_command_line_tells_its_version():
    for command in (cli, bench):
        assert invoke(command, "--version").output.split()[-1] == __version__


def test_a_flow_service_without_an_error_message_is_not_quoted(monkeypatch):
    """What a child prints is not an error message, be it a warning or a traceback."""
    words = [*PYTHON, "-m", "firmament_py", "policies", "--json"]
    done = subprocess.CompletedProcess(words, 1, "", "Traceback (most recent call last):\nNameError: x\n")
    monkeypatch.setattr("poseidon_py.cli.policies._firmament", lambda *_: done)
    result = run("policies")
    assert (result.exit_code, result.output) == (
        1,
        "error: the flow service's command exited with code 1 without an error message; "
        "run `firmament policies --json`\n",
    )


@pytest.mark.e2e
@pytest.mark.slow
class TestProcesses:
    def test_an_unknown_policy_lists_the_known_ones(self, kubeconfig):
        done = process("run", "--kubeconfig", kubeconfig, "--policy", "nope")
        assert done.returncode == 2
        assert done.stderr.startswith("error: there is no policy 'nope'; there are: ")
        assert "load-spreading" in done.stderr

    def test_policies_as_json(self, tmp_path):
        """The flow service imports nothing from the present folder, where files have any name."""
        (tmp_path / "numpy.py").write_text("raise SystemExit('an output')")
        done = process("policies", "--json", folder=tmp_path)
        assert done.returncode == 0, done.stderr
        assert "load-spreading" in {policy["name"] for policy in json.loads(done.stdout)}

    def test_an_unreachable_api_server(self, kubeconfig):
        done = process(
            "run", "--kubeconfig", kubeconfig, "--health-port", "-1", "--log-level", "error", "--startup-timeout", "8"
        )
        assert done.returncode == 1
        assert done.stderr.startswith("error: cannot reach the API server at http://127.0.0.1:9: ")
        assert done.stderr.count("\n") == 1

    def test_a_flow_service_that_refuses_its_arguments_says_why(self, kubeconfig, tmp_path):
        (tmp_path / "c").write_text("firmament-args: [--policy-option, zzz=1]")
        done = process("run", "--config", str(tmp_path / "c"), "--kubeconfig", kubeconfig, "--health-port", "-1")
        assert done.returncode == 2
        last = done.stderr.splitlines()[-1]
        assert last.startswith("error: the flow service exited with code 2: policy load-spreading has no option 'zzz'")

    def test_a_start_can_be_interrupted(self, kubeconfig):
        arguments = ["run", "--kubeconfig", kubeconfig, "--health-port", "-1"]
        with subprocess.Popen(
            [sys.executable, "-m", "poseidon_py", *arguments], stderr=subprocess.PIPE, text=True
        ) as child:
            first = next(iter(child.stderr or ()))
            assert f"poseidon {__version__} starts on Python {platform.python_version()}, pid {child.pid}" in first
            for line in child.stderr or ():
                assert line.startswith("time=")  # the flow service's, too
                if "cannot reach" in line:
                    break
            os.kill(child.pid, signal.SIGTERM)
            last_lines = (child.stderr or io.StringIO()).read()
            assert child.wait(30) == 0
        assert "SIGTERM was received: ending" in last_lines
        assert last_lines.splitlines()[-1].endswith('msg="poseidon has ended, because SIGTERM was received"')


class Answers(BaseHTTPRequestHandler):
    bodies: ClassVar[dict[str, Any]] = {}

    def do_GET(self):
        status, body = self.bodies.get(self.path, (404, b'{"error": "pod a/b not found"}'))
        self.send_response(status)
        self.end_headers()
        self.wfile.write(body if isinstance(body, bytes) else json.dumps(body).encode())

    def log_message(self, *_):
        pass


@pytest.fixture
def scheduler():
    server = HTTPServer(("127.0.0.1", 0), Answers)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


EXPLAINED = {
    "pod": "ns/p",
    "state": "waits for a node",
    "node": "",
    "priority": 0,
    "problem": "",
    "message": "0/2 nodes are available: 2 Insufficient cpu.",
    "requests": {"cpu": 1500, "memory": 2**30, "pods": 1},
    "fits_now": 0,
    "nearest": [{"node": "n1", "lacks": {"cpu": 500}}],
    "story": ["observed"],
}


def test_explain_as_text_and_as_json(scheduler):
    Answers.bodies = {"/explain?pod=ns%2Fp": (200, EXPLAINED)}
    out = run("explain", "ns/p", "--address", scheduler).output
    for words in ("ns/p", "waits for a node", "2 Insufficient cpu.", "cpu 1.5", "memory 1Gi", "n1", "cpu 0.5"):
        assert words in out
    assert json.loads(run("explain", "ns/p", "--address", scheduler, "--json").output) == EXPLAINED


def test_explain_lists_only_nodes_that_lack_something(scheduler):
    nodes = [{"node": "n1", "lacks": {}}, {"node": "n2", "lacks": {"cpu": 500}}]
    Answers.bodies = {"/explain?pod=ns%2Fp": (200, {**EXPLAINED, "fits_now": 1, "nearest": nodes})}
    out = run("explain", "ns/p", "--address", scheduler).output
    assert "nodes on which it fits now: 1" in out
    assert "n2" in out
    assert "n1" not in out


def test_explain_does_not_list_nodes_for_a_pod_that_waits_for_its_queue(scheduler):
    body = {**EXPLAINED, "message": "waits for quota of queue q: lacks 1 cpu", "fits_now": None, "nearest": []}
    Answers.bodies = {"/explain?pod=ns%2Fp": (200, body)}
    out = run("explain", "ns/p", "--address", scheduler).output
    assert "waits for quota of queue q" in out
    assert "nodes on which" not in out
    assert "lacks\n" not in out


def test_a_pod_without_namespace_is_in_that_of_the_context_or_in_default(scheduler, tmp_path, monkeypatch):
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    Answers.bodies = {"/explain?pod=default%2Fp": (200, EXPLAINED)}
    assert run("explain", "p", "--address", scheduler).exit_code == 0
    (tmp_path / "kubeconfig").write_text(CONFIG.replace("user: u}", "user: u, namespace: team}"))
    Answers.bodies = {"/explain?pod=team%2Fp": (200, EXPLAINED)}
    assert run("explain", "p", "--address", scheduler).exit_code == 0


def test_the_namespace_of_a_pod_can_be_a_flag(scheduler):
    Answers.bodies = {"/explain?pod=ns%2Fp": (200, EXPLAINED)}
    assert run("explain", "p", "-n", "ns", "--address", scheduler).exit_code == 0
    assert run("explain", "ns/p", "-n", "other", "--address", scheduler).exit_code == 0


def test_names_are_completed_by_the_scheduler(scheduler):
    """As a shell asks for them; without a scheduler there are none, and no error."""
    Answers.bodies = {"/queues": (200, {"queues": [{"name": "research"}, {"name": "web"}, {"name": "research/a"}]})}
    for words, found in (
        (f"poseidon queues --address {scheduler} re", ["research", "research/a"]),
        ("poseidon queues --address 127.0.0.1:9 re", []),
        ("poseidon sta", ["status"]),
    ):
        arguments, _, incomplete = words.rpartition(" ")
        completion = ShellComplete(cli, {}, "poseidon", "_POSEIDON_COMPLETE")
        items = completion.get_completions(arguments.split()[1:], incomplete)
        assert [item.value for item in items] == found


def serving(server, **fields):
    """The answers of a scheduler of that API server."""
    identity = {"server": server, "in_cluster": False, "scheduler_names": ["poseidon"], "identity": "x"} | fields
    return {"/identity": (200, identity), "/explain?pod=default%2Fp": (200, EXPLAINED)}


def test_a_scheduler_of_another_cluster_does_not_answer_for_this_one(scheduler, kubeconfig, monkeypatch):
    """Without --address the scheduler on the default port is queried, which may belong to another cluster."""
    monkeypatch.setattr("poseidon_py.cli.reaching.selection.LOCAL", scheduler)
    monkeypatch.setenv("KUBECONFIG", kubeconfig)
    Answers.bodies = serving("http://127.0.0.1:9")
    assert run("explain", "p").exit_code == 0
    Answers.bodies = serving("https://elsewhere:6443")
    other = (
        f"the scheduler at {scheduler} (poseidon) serves the API server https://elsewhere:6443, not http://127.0.0.1:9 "
        f"of the kubeconfig {kubeconfig}; give --address HOST:PORT of the health port of the right scheduler\n"
    )
    for arguments in (["status"], ["explain", "p"]):
        result = run(*arguments)
        assert result.exit_code == 1
        assert result.output.startswith(
            "error: no leader is known in the cluster http://127.0.0.1:9: lease kube-system/poseidon cannot be read: "
            "cannot reach the API server at http://127.0.0.1:9: "
        )
        assert result.output.endswith(f"; {other}")
    result = run("explain", "p", "--address", scheduler, "--context", "c")
    assert (result.exit_code, result.output) == (1, f"error: {other}")
    assert (
        run("explain", "p", "--address", scheduler).exit_code == 0
    )  # named explicitly, so that it may serve any API server
    Answers.bodies = serving("https://10.96.0.1:443", in_cluster=True)  # another address of the same API server
    assert run("explain", "p").exit_code == 0


def test_without_a_kubeconfig_there_is_nothing_to_compare(scheduler, monkeypatch, tmp_path):
    monkeypatch.setattr("poseidon_py.cli.reaching.selection.LOCAL", scheduler)
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    Answers.bodies = serving("https://elsewhere:6443")
    assert run("explain", "p").exit_code == 0


def test_a_kubeconfig_that_is_given_has_to_name_a_server(scheduler, kubeconfig):
    result = run("status", "--address", scheduler, "--kubeconfig", kubeconfig, "--context", "nope")
    assert result.exit_code == 1
    assert f"the kubeconfig {kubeconfig} has no server for context nope; correct" in result.output


def test_a_kubeconfig_that_is_missing_is_named(scheduler, monkeypatch, tmp_path):
    monkeypatch.delenv("KUBECONFIG", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    result = run("status", "--address", scheduler, "--context", "nope")
    assert (result.exit_code, result.output) == (
        1,
        "error: there is no kubeconfig with the context nope; give --kubeconfig, or omit --context\n",
    )
    missing = tmp_path / "missing"
    result = run("status", "--address", scheduler, "--kubeconfig", str(missing))
    assert (result.exit_code, result.output) == (
        1,
        f"error: the kubeconfig {missing} does not exist; correct --kubeconfig\n",
    )


def test_queries_that_cannot_be_answered(scheduler):
    Answers.bodies = {"/status": (200, b"<html>"), "/gangs?": (404, b"<html>")}
    for arguments, says in (
        (("gangs", "--address", scheduler), f"{scheduler} is not a scheduler: 404 Not Found; give --address"),
        (("explain", "a/b", "--address", scheduler), "pod a/b not found"),
        (("status", "--address", scheduler), "no scheduler at"),
        (("status", "--address", "127.0.0.1:9"), "no scheduler at 127.0.0.1:9"),
    ):
        result = run(*arguments)
        assert result.exit_code == 1
        assert says in result.output
        assert result.output.count("\n") == 1
