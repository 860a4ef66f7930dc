"""--address https://HOST:PORT: tokens alone, and only to a server whose certificate is trusted."""

import json
import ssl
from pathlib import Path

import pytest

from poseidon_py.app.serving.certificate import _self_signed
from poseidon_py.cli.main import cli
from tests.command_line import invoke

USERS = {
    "token": "{token: t1}",
    "certificate": "{username: admin, password: p}",
    "plug-in": """{exec: {apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never, command: sh, args: [-c, '
      echo "{\\"apiVersion\\": \\"client.authentication.k8s.io/v1\\", \\"kind\\": \\"ExecCredential\\",
      \\"status\\": {\\"token\\": \\"t2\\"}}"']}}""",
}
"""Kinds of users in a kubeconfig; a password stands for all that is no token."""


@pytest.fixture
def secure(stub, tmp_path):
    """The scheduler over HTTPS: its address, and its certificate."""
    import datetime

    file = tmp_path / "certificate.pem"
    file.write_bytes(_self_signed(datetime.datetime.now(datetime.UTC)))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(file)
    stub.server.socket = context.wrap_socket(stub.server.socket, server_side=True)
    return f"https://127.0.0.1:{stub.port}", str(file)


def kubeconfig(folder: Path, user: str) -> str:
    file = folder / "kubeconfig"
    file.write_text(
        f"""
clusters: [{{name: c, cluster: {{server: "http://127.0.0.1:9"}}}}]
users: [{{name: u, user: {user}}}]
contexts: [{{name: c, context: {{cluster: c, user: u}}}}]
current-context: c
"""
    )
    return str(file)


@pytest.mark.parametrize(("user", "token"), [("token", "t1"), ("plug-in", "t2")])
def test_the_token_of_the_kubeconfig_is_sent(secure, stub, tmp_path, monkeypatch, user, token):
    address, certificate = secure
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, USERS[user]))
    result = invoke(cli, "status", "--json", "--address", address, "--certificate-authority", certificate)
    assert (result.exit_code, json.loads(result.stdout)) == (0, {"path": "/status"}), result.stderr
    assert stub.tokens == [f"Bearer {token}"]


def test_a_user_without_a_token_needs_a_file_of_one(secure, stub, tmp_path, monkeypatch):
    address, certificate = secure
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, USERS["certificate"]))
    flags = ("status", "--json", "--address", address, "--certificate-authority", certificate)
    result = invoke(cli, *flags)
    assert result.exit_code == 1
    assert (
        "takes tokens alone, and the user of the kubeconfig has none (a client certificate is of no use"
        in result.stderr
    )
    assert "give --token-file FILE, as `kubectl create token ACCOUNT` prints one" in result.stderr
    token = tmp_path / "token"
    token.write_text("t3\n")
    assert invoke(cli, *flags, "--token-file", str(token)).exit_code == 0
    assert stub.tokens == ["Bearer t3"]


def test_no_token_is_sent_to_a_server_that_is_not_trusted(secure, stub, tmp_path, monkeypatch):
    address, _ = secure
    monkeypatch.setenv("KUBECONFIG", kubeconfig(tmp_path, USERS["token"]))
    result = invoke(cli, "status", "--address", address)
    assert result.exit_code == 1
    assert f"the certificate of {address} is not trusted" in result.stderr
    assert "give --certificate-authority FILE" in result.stderr
    assert stub.tokens == []


@pytest.mark.parametrize(
    ("flags", "says"),
    [
        (("--address", "ftp://h:1"), "--address ftp://h:1 is no address; give HOST:PORT or https://HOST:PORT"),
        (("--address", "h:99999"), "--address h:99999: Port out of range"),
        (("--address", "h:1", "--token-file", "x"), "are for --address https://HOST:PORT"),
        (("--address", "https://h:1", "--token-file", "/dev/null/token"), "--token-file /dev/null/token: "),
    ],
)
def test_flags_that_cannot_be_used(flags, says):
    result = invoke(cli, "status", *flags)
    assert result.exit_code == 2
    assert says in result.stderr
