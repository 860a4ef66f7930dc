"""What a kubelet gives a pod: the address of the API server, a token that changes, certificates, a namespace."""

import datetime
from collections.abc import Callable
from pathlib import Path

import pytest

from poseidon_py.app.serving.certificate import _self_signed
from poseidon_py.kube import credentials, service_account
from poseidon_py.kube.credentials import CredentialsError


@pytest.fixture(scope="module")
def certificate() -> bytes:
    return _self_signed(datetime.datetime.now(datetime.UTC))


@pytest.fixture
def account(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certificate: bytes) -> Path:
    """The folder of the account of a pod that this process seems to be in."""
    for name, text in {"token": "first\n", "namespace": "batch", "ca.crt": certificate.decode()}.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(service_account, "FOLDER", tmp_path)
    for name, value in {
        "KUBECONFIG": "", "HOME": str(tmp_path),
        "KUBERNETES_SERVICE_HOST": "10.96.0.1", "KUBERNETES_SERVICE_PORT": "443",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    for name in ("HTTPS_PROXY", "https_proxy", "NO_PROXY", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


async def test_the_access_of_a_pod(account: Path):
    access = await credentials.load(None, None)
    assert (access.url, access.namespace, access.in_cluster) == ("https://10.96.0.1:443", "batch", True)
    assert access.headers == {"Authorization": "Bearer first"}
    assert access.tls is not None
    assert access.tls.check_hostname
    assert access.tls.cert_store_stats()["x509"] == 1, "no other authority is trusted"
    assert access.proxy is None


async def test_a_new_token_is_read(account: Path):
    access = await credentials.load(None, None)
    assert not await access.refresh()
    (account / "token").write_text("second")
    assert await access.refresh()
    assert access.headers == {"Authorization": "Bearer second"}
    (account / "token").unlink()
    with pytest.raises(CredentialsError, match=r"token cannot be read: No such file"):
        await access.refresh()
    assert access.headers == {"Authorization": "Bearer second"}, "the old one may still be valid"


async def test_the_host_may_be_an_address_of_ipv6_behind_a_proxy(account: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    access = await credentials.load(None, None)
    assert (access.url, access.host, access.proxy) == ("https://[fd00::1]:443", "fd00::1", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "fd00::1")
    assert (await credentials.load(None, None)).proxy is None


def without_variable(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_PORT")


def with_a_port_that_is_none(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "tcp")


def without_token(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (account / "token").unlink()


def with_an_empty_token(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (account / "token").write_text("\n")


def with_a_token_of_two_lines(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (account / "token").write_text("a\nX-Y: z")


def without_certificates(account: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (account / "ca.crt").write_text("")


@pytest.mark.parametrize(
    ("spoilt", "says"),
    [
        (without_variable, r"KUBERNETES_SERVICE_PORT are not set.*--kubeconfig"),
        (with_a_port_that_is_none, r"address 'https://10\.96\.0\.1:tcp' is invalid"),
        (without_token, r"token cannot be read: No such file.*--kubeconfig"),
        (with_an_empty_token, "token is empty"),
        (with_a_token_of_two_lines, "not a single line of text"),
        (without_certificates, r"ca\.crt, cannot be used"),
    ],
)
async def test_what_is_missing_is_named(
    account: Path, monkeypatch: pytest.MonkeyPatch, spoilt: Callable[[Path, pytest.MonkeyPatch], None], says: str
):
    spoilt(account, monkeypatch)
    with pytest.raises(CredentialsError, match=says):
        await credentials.load(None, None)


async def test_a_pod_without_a_namespace_is_in_the_default_one(account: Path):
    (account / "namespace").unlink()
    assert (await credentials.load(None, None)).namespace == "default"
