"""Which certificates of servers clients accept."""

import ssl

import pytest

from poseidon_py.kube.credentials import trusting
from tests.certificates import Authority


def shake_hands(client: ssl.SSLContext, server: ssl.SSLContext) -> None:
    """Raises ssl.SSLError if the client refuses the server."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    )
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].getpeercert(), "the handshake is over"


@pytest.fixture
def server(tmp_path):
    """Its certificate and its authority's have no key identifiers: Python 3.13 refuses
    such ones by default (ssl.VERIFY_X509_STRICT), Go does not."""
    pair = Authority(tmp_path, "authority").issue("localhost", "localhost")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pair.certificate, pair.key)
    return context


def test_authorities_need_no_key_identifiers(server, tmp_path, monkeypatch):
    original = ssl.create_default_context

    def strict(**arguments):
        """As Python 3.13 creates them, in all versions."""
        context = original(**arguments)
        context.verify_flags |= ssl.VERIFY_X509_STRICT
        return context

    monkeypatch.setattr(ssl, "create_default_context", strict)
    client = trusting(tmp_path / "authority.pem")
    shake_hands(client, server)
    assert client.verify_mode is ssl.CERT_REQUIRED
    assert client.check_hostname
    assert not client.verify_flags & ssl.VERIFY_X509_STRICT


def test_other_authorities_are_not_trusted(server, tmp_path):
    Authority(tmp_path, "other")
    for authorities in (tmp_path / "other.pem", None):
        with pytest.raises(ssl.SSLCertVerificationError):
            shake_hands(trusting(authorities), server)
