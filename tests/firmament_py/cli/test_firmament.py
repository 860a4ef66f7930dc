"""The `firmament` command: its lists and its errors."""

import json
import signal
import socket
import subprocess
import sys
import time

import pytest

from firmament_py import compile_ahead
from firmament_py.cli.main import cli
from firmament_py.policy import conformance
from firmament_py.version import VERSION
from tests.certificates import Authority
from tests.command_line import invoke


def run(*words: str):
    return invoke(cli, *words)


def test_version():
    assert run("--version").output.strip() == f"firmament, version {VERSION}"


def test_policies_are_listed_as_text():
    result = run("policies")
    assert result.exit_code == 0
    (line,) = [line for line in result.output.splitlines() if line.startswith("load-spreading ")]
    assert "Fewest running tasks first" in line


def test_options_of_policies_are_listed_with_type_and_default():
    output = run("policies").output
    assert "--policy-option by=tasks|requested  [default: tasks]" in output
    assert "--policy-option seed=INTEGER  [default: 0]" in output
    assert "--policy-option penalties=TEXT  [default: none]" in output


def test_policies_are_listed_as_json():
    listed = json.loads(run("policies", "--json").output)
    assert {"name", "summary", "options", "error"} == set(listed[0])
    assert "load-spreading" in {policy["name"] for policy in listed}


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        pytest.param(["--policy", "load-spredding"], "did you mean load-spreading?", id="policy"),
        pytest.param(["--policy-option", "depth=1"], "policy load-spreading has no option 'depth'", id="option"),
        pytest.param(["--policy-option", "depth"], "--policy-option 'depth' is not of the form K=V", id="no-value"),
        pytest.param(["--policy-option", "=1"], "is not of the form K=V", id="no-key"),
        pytest.param(["--solver", "magic"], "'magic' is not one of", id="solver"),
        pytest.param(["--tls-cert-file", "README.md"], "--tls-private-key-file go together", id="tls-halves"),
        pytest.param(["--usage", "some"], "'some' is not one of", id="usage"),
        pytest.param(["--usage-samples", "0"], "--usage-samples is 0; give 1 to", id="usage-samples"),
        pytest.param(["--usage-stale", "-1"], "--usage-stale is -1.0; give seconds", id="usage-stale"),
        pytest.param(["--usage-half-life", "0"], "--usage-half-life is 0.0; give seconds", id="usage-half-life"),
        pytest.param(["--reserve-after", "soon"], "--reserve-after is 'soon'; give seconds from 0", id="reserve-after"),
        pytest.param(["--client-ca-file", "README.md"], "--client-ca-file needs both", id="tls-ca-alone"),
        pytest.param(["--port-file", "no/x"], "cannot write --port-file no/x: No such file", id="port-file"),
    ],
)
def test_wrong_usage_gives_one_line_and_exit_code_2(words, reported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text("not a certificate\n")
    result = run("serve", *words)
    assert result.exit_code == 2
    assert reported in " ".join(result.output.split())
    assert "Traceback" not in result.output


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    """A folder with two certificates and their keys."""
    folder = tmp_path_factory.mktemp("tls")
    for name in ("a", "b"):
        Authority(folder, f"authority-{name}").issue(name, "localhost")
    (folder / "junk").write_text("not a certificate\n")
    return folder


@pytest.mark.parametrize(
    ("files", "reported"),
    [
        (("a.pem", "junk"), "--tls-private-key-file junk cannot be used ("),
        (("a.pem", "b.key"), "--tls-private-key-file b.key is not the key of --tls-cert-file a.pem"),
        (("junk", "a.key"), "--tls-cert-file junk cannot be used (no certificate or crl found); give a readable"),
        (("a.pem", "a.key", "junk"), "--client-ca-file junk cannot be used (no certificate or crl found)"),
        (("a.pem", "a.key", "b.pem"), "cannot write --port-file no/x"),
    ],
)
def test_unusable_tls_files_are_named(pairs, files, reported, monkeypatch):
    monkeypatch.chdir(pairs)
    flags = ("--tls-cert-file", "--tls-private-key-file", "--client-ca-file")
    words = [word for pair in zip(flags, files, strict=False) for word in pair]
    result = run("serve", "--address", "127.0.0.1:0", "--port-file", "no/x", *words)
    assert result.exit_code == 2
    assert reported in " ".join(result.output.split())


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "flow.example:9090", "10.0.0.7:9090"])
def test_other_machines_connect_with_certificates_alone(address, pairs, monkeypatch):
    monkeypatch.chdir(pairs)
    unauthenticated = ("--tls-cert-file", "a.pem", "--tls-private-key-file", "a.key")
    for words in ((), unauthenticated):
        result = run("serve", "--address", address, *words)
        assert result.exit_code == 2
        text = " ".join(result.output.split())
        assert f"--address {address} is open to other machines: give --tls-cert-file, --tls-private-key-file" in text
        assert "or --insecure, so that everybody can" in text
    result = run("serve", "--address", "127.0.0.1:0", "--stats-address", address)
    assert f"--stats-address {address} is open to other machines, and has no TLS" in " ".join(result.output.split())


MUTUAL = ("--tls-cert-file", "a.pem", "--tls-private-key-file", "a.key", "--client-ca-file", "b.pem")


def test_a_socket_without_grpc_takes_no_certificates(pairs, monkeypatch):
    monkeypatch.chdir(pairs)
    result = run("serve", "--address", "direct:x", *MUTUAL)
    assert result.exit_code == 2
    assert "--address direct:x takes no certificates" in " ".join(result.output.split())


@pytest.mark.parametrize("words", [("--insecure",), MUTUAL])
def test_other_machines_connect_if_that_is_wanted(words, pairs, monkeypatch):
    monkeypatch.chdir(pairs)
    result = run("serve", "--address", "0.0.0.0:0", "--port-file", "no/x", *words)
    assert "cannot write --port-file no/x" in " ".join(result.output.split())


def test_what_is_not_compiled_is_not_compiled_while_serving(monkeypatch):
    monkeypatch.setattr(compile_ahead, "stale", lambda: ["packing"])
    result = run("serve", "--address", "127.0.0.1:0")
    assert result.exit_code == 2
    assert "the compiled functions of packing are missing" in " ".join(result.output.split())
    assert "run: firmament compile" in " ".join(result.output.split())


def test_compilation_says_what_it_does_and_why_it_fails(monkeypatch):
    monkeypatch.setattr(compile_ahead, "compile_stale", lambda tell: tell("compiled: packing"))
    assert run("compile").output == "compiled: packing\n"

    def refuse(_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(compile_ahead, "compile_stale", refuse)
    result = run("compile")
    assert result.exit_code == 1
    assert "Permission denied; the folder" in " ".join(result.output.split())


@pytest.mark.parametrize("address", ["9090", "127.0.0.1:", "127.0.0.1:65536", "127.0.0.1:-1", "127.0.0.1:٣", "h:1x"])
def test_an_address_needs_a_valid_port(address):
    result = run("serve", "--address", address)
    assert result.exit_code == 2
    assert "is not HOST:PORT with a port from 0 to 65535" in " ".join(result.output.split())


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        pytest.param(["--address", "unix:"], "has a path of 0 bytes; a unix socket can have 1 to 107", id="no-path"),
        pytest.param(["--address", "unix:/" + "x" * 107], "has a path of 108 bytes", id="too-long"),
        pytest.param(["--address", "unix:" + "ü" * 54], "has a path of 108 bytes", id="too-long-in-bytes"),
        pytest.param(["--address", "unix:no/x"], "not a path where a socket can be created", id="no-folder"),
        pytest.param(["--address", "unix:x", "--port-file", "y"], "--port-file needs an --address with", id="no-port"),
        pytest.param(["--address", "direct:no/x"], "not a path where a socket can be created", id="direct-no-folder"),
        pytest.param(["--address", "direct:/" + "x" * 107], "has a path of 108 bytes", id="direct-too-long"),
        pytest.param(["--address", "direct:x", "--port-file", "y"], "needs an --address with", id="direct-no-port"),
        pytest.param(["--stats-address", "direct:x"], "--stats-address serves gRPC alone", id="direct-stats"),
        pytest.param(["--stats-address", "h"], "--stats-address 'h' is not HOST:PORT", id="stats"),
    ],
)
def test_an_impossible_socket_is_wrong_usage(words, reported, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = run("serve", "--address", "127.0.0.1:0", *words)
    assert result.exit_code == 2
    assert reported in " ".join(result.output.split())


@pytest.mark.parametrize("flag", ["--address", "--stats-address"])
def test_a_socket_in_use_is_left_alone(flag, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as taken:
        taken.bind("s")
        taken.listen()
        result = run("serve", "--address", "127.0.0.1:0", flag, "unix:s")
        assert result.exit_code == 2
        assert f"cannot listen on unix:s: in use; choose another {flag}" in " ".join(result.output.split())
        with socket.socket(socket.AF_UNIX) as client:
            client.connect("s")


def test_an_address_in_use_is_wrong_usage():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        result = run("serve", "--address", address)
    assert result.exit_code == 2
    assert f"cannot listen on {address}: in use; choose another --address" in " ".join(result.output.split())
    assert "choose another --address" in result.output


def test_a_policy_that_conforms_is_reported():
    result = run("check-policy", "trivial")
    assert result.exit_code == 0
    assert "FAILED" not in result.output
    assert "costs of 5,000 nodes x 256 classes: " in result.output
    reported = json.loads(run("check-policy", "random", "--policy-option", "seed=3", "--json").output)
    assert (reported["policy"], reported["findings"], list(reported["waived"])) == ("random", [], ["favourites"])
    assert reported["scale"]["nodes"] == 5000


def test_a_policy_that_does_not_conform_gives_exit_code_1(monkeypatch):
    broken = conformance.Finding("age", "it is upside down")
    monkeypatch.setattr(conformance, "check", lambda policy, name: [broken])
    result = run("check-policy")
    assert result.exit_code == 1
    assert "FAILED  age: it is upside down" in result.output
    machine = run("check-policy", "--json")
    assert machine.exit_code == 1
    assert json.loads(machine.output)["findings"] == [{"rule": "age", "message": "it is upside down"}]


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        (["no-such"], "there is no policy 'no-such'"),
        (["random", "--policy-option", "seed=-1"], "policy random: option seed is -1; give a whole number from 0"),
        (["load-spreading", "--policy-option", "by=size"], "option by is 'size'; give one of: tasks, requested"),
        (["trivial", "--policy-option", "seed"], "is not of the form K=V"),
    ],
)
def test_a_policy_that_cannot_be_loaded_gives_exit_code_2(words, reported):
    for extra in ([], ["--load-only"]):
        result = run("check-policy", *words, *extra)
        assert result.exit_code == 2
        assert reported in " ".join(result.output.split())


def test_load_only_prints_nothing_on_success():
    result = run("check-policy", "--policy-option", "by=requested", "--load-only")
    assert (result.exit_code, result.output) == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, None])
def test_a_service_that_watches_its_parent_exits_cleanly(tmp_path, number):
    port_file = tmp_path / "port"
    words = ["serve", "--address", "127.0.0.1:0", "--exit-with-parent", "--port-file", str(port_file)]
    command = [sys.executable, "-m", "firmament_py", *words]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as service:
        try:
            deadline = time.monotonic() + 30
            while not port_file.exists() and service.poll() is None and time.monotonic() < deadline:
                time.sleep(0.02)
            assert port_file.exists()
            if number is not None:
                service.send_signal(number)
                assert service.wait(30) == 0  # while its input is still open
            _, errors = service.communicate(timeout=30)  # which ends its input
        finally:
            service.kill()
    assert service.returncode == 0
    assert "Fatal Python error" not in errors
