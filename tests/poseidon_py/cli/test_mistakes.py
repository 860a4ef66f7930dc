"""Invalid input of `poseidon run`: one line that names the error, and an exit code.

The whole command runs inside the test's process, and so does the flow service's `check-policy`. test_poseidon.py and
tests/e2e/test_shell.py check the output of real processes.
"""

import socket
import subprocess
from pathlib import Path

import pytest

from firmament_py.cli.main import cli as firmament
from poseidon_py.cli.main import cli
from tests.command_line import invoke

CONFIG = """
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]
users: [{name: u, user: {}}]
contexts: [{name: c, context: {cluster: c, user: u}}]
current-context: c
"""


@pytest.fixture(autouse=True)
def outside_a_cluster(monkeypatch):
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", "/nonexistent")


@pytest.fixture(autouse=True)
def flow_service_in_process(monkeypatch):
    def answer(*words):
        done = invoke(firmament, *words)
        return subprocess.CompletedProcess(words, done.exit_code, done.stdout, done.stderr)

    monkeypatch.setattr("poseidon_py.cli.policies._firmament", answer)


@pytest.fixture
def kubeconfig(tmp_path):
    file = tmp_path / "kubeconfig"
    file.write_text(CONFIG)
    return str(file)


def refused(*arguments, code=2):
    """The one line that `poseidon run` prints about an error."""
    result = invoke(cli, "run", "--no-leader-elect", "--log-level", "error", *arguments)
    assert result.exit_code == code, result.output
    (line,) = (line for line in result.stderr.splitlines() if not line.startswith(("Usage: ", "Try ")) and line)
    assert line.lower().startswith("error: ")
    return line[len("error: ") :]


def written(path, content):
    """None: the file does not exist."""
    if content is not None:
        path.write_text(content)
    return str(path)


# -- the kubeconfig ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param("{{{ broken", "cannot use the kubeconfig {}: while parsing", id="not YAML"),
        pytest.param("- a list", "cannot use the kubeconfig {}: the file is a list; give a mapping", id="list"),
        pytest.param("", "cannot use the kubeconfig {}: the file is empty; give a mapping", id="empty"),
        pytest.param("apiVersion: v1\nkind: Config\n", "cannot use the kubeconfig {}: ", id="no context"),
        pytest.param(None, "there is no kubeconfig {}", id="missing"),
    ],
)
def test_kubeconfigs_that_cannot_be_used(tmp_path, content, text):
    path = written(tmp_path / "kubeconfig", content)
    assert refused("--kubeconfig", path, "--health-port", "-1").startswith(text.format(path))


def test_neither_a_kubeconfig_nor_a_cluster_around():
    assert "--kubeconfig" in refused("--health-port", "-1")


def test_an_unknown_context(kubeconfig):
    line = refused("--kubeconfig", kubeconfig, "--context", "nowhere", "--health-port", "-1")
    assert line.startswith(f"cannot use the kubeconfig {kubeconfig}: ")
    assert "nowhere" in line


@pytest.mark.parametrize("server", ["https://127.0.0.1:99999", "ftp://h"])
def test_an_invalid_address_of_the_api_server(tmp_path, server):
    path = written(tmp_path / "kubeconfig", CONFIG.replace("http://127.0.0.1:9", server))
    line = refused("--kubeconfig", path, "--health-port", "-1")
    assert line.startswith(f"cannot use the kubeconfig {path}: the API server's address {server!r}")
    assert line.endswith("; correct its server")


# -- flags -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        pytest.param(("--policy", "guess"), "there is no policy 'guess'; there are: bin-packing, ", id="policy"),
        pytest.param(
            ("--policy-option", "novalue"), "policy-option is 'novalue'; give it as K=V", id="form of a policy option"
        ),
        pytest.param(
            ("--policy-option", "zzz=1"), "policy load-spreading has no option 'zzz'; it has: by", id="policy option"
        ),
        pytest.param(
            ("--policy", "random", "--policy-option", "seed=-1"),
            "policy random: option seed is -1; give a whole number from 0 to 2**63 - 1",
            id="value of a policy option",
        ),
        pytest.param(("--scheduler-name", ""), "scheduler-name is empty; give the spec.schedulerName", id="empty name"),
        pytest.param(
            ("--lease-duration", "1", "--renew-deadline", "5"),
            "--lease-duration (1) must be more than --renew-deadline (5), and that more than 1.2 times --retry",
            id="lease times",
        ),
        pytest.param(
            ("--bind-concurrency", "0"), "--bind-concurrency is 0; give a whole number of 1 or more", id="concurrency"
        ),
        pytest.param(
            ("--usage-interval", "often"),
            "--usage-interval is 'often'; give a number of seconds from 1 to 86400, or a duration such as 15s or off",
            id="interval",
        ),
        pytest.param(("--event-rate", "nan"), "--event-rate is nan; give a finite number", id="rate"),
        pytest.param(("--added-node-affinity", "[1]"), "--added-node-affinity is [1]; give a mapping", id="mapping"),
        pytest.param(
            ("--health-port", "70000"), "--health-port is 70000; give a whole number from -1 to 65535", id="port"
        ),
        pytest.param(("--log-level", "loud"), "Invalid value for '--log-level': 'loud' is not one of", id="choice"),
        pytest.param(
            ("--firmament-address", "127.0.0.1:9", "--policy", "trivial"),
            "policy belongs to the flow service: give --policy to `firmament serve`",
            id="policy of another flow service",
        ),
    ],
)
def test_flags_that_cannot_be_used(kubeconfig, arguments, text):
    default = () if "--health-port" in arguments else ("--health-port", "-1")
    assert text in refused("--kubeconfig", kubeconfig, *default, *arguments)


def test_a_health_port_in_use(kubeconfig):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        line = refused("--kubeconfig", kubeconfig, "--health-port", port)
    assert line.startswith(f"cannot serve health on 127.0.0.1:{port}: Address already in use; choose")
    assert "--health-port" in line


def test_a_health_address_that_cannot_be_resolved(kubeconfig):
    line = refused("--kubeconfig", kubeconfig, "--health-address", "127.0.0.1:0")
    assert line.startswith("cannot serve health on 127.0.0.1:0:10271: ")
    assert "Unknown error" not in line
    assert line.endswith("give an IP address or a host name of this machine as --health-address")


def test_an_unreachable_flow_service(kubeconfig):
    address = ("--firmament-address", "127.0.0.1:9", "--startup-timeout", "0.1")
    with socket.create_server(("127.0.0.1", 0)) as silent:  # an API server that answers nothing
        there = f"http://127.0.0.1:{silent.getsockname()[1]}"
        Path(kubeconfig).write_text(Path(kubeconfig).read_text().replace("http://127.0.0.1:9", there))
        line = refused("--kubeconfig", kubeconfig, "--health-port", "-1", *address, code=1)
    assert line.startswith("no flow service at 127.0.0.1:9: ")
    assert "firmament serve" in line


# -- the configuration file --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "text"),
    [
        pytest.param(
            "schedulername: x", "unknown key 'schedulername' in {}; did you mean 'scheduler-name'?", id="a neighbour"
        ),
        pytest.param("frobnicate: 3", "unknown key 'frobnicate' in {}; see `poseidon run --help`", id="unknown key"),
        pytest.param(
            "bind-concurrency: many",
            "bind-concurrency in {} is 'many'; give a whole number of 1 or more",
            id="wrong type",
        ),
        pytest.param("][", "{} is not valid YAML: ", id="not YAML"),
        pytest.param("- 1", "the configuration {} is [1], not a mapping; give lines like ", id="list"),
        pytest.param(None, "cannot read {}: No such file or directory; correct the path", id="missing"),
    ],
)
def test_configuration_files_that_cannot_be_used(tmp_path, content, text):
    path = written(tmp_path / "poseidon.yaml", content)
    assert refused("--config", path).startswith(text.format(path))
