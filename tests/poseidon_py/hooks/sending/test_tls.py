"""Endpoints with certificates of their own authority."""

import ssl

import pytest

from poseidon_py.hooks.clock import Clock
from poseidon_py.hooks.config.hook_config import Hook
from poseidon_py.hooks.config.loading import HookConfigError, load_hooks
from poseidon_py.hooks.records import Record
from poseidon_py.hooks.sending.endpoint import Endpoint
from poseidon_py.hooks.transition import delivery_id
from tests.certificates import Authority
from tests.poseidon_py.hooks.receiver import Receiver
from tests.poseidon_py.hooks.world import EPOCH, make_transition


async def send(hook):
    endpoint = Endpoint(hook, Clock())
    try:
        transition = make_transition()
        return await endpoint.send(Record(hook.name, delivery_id(transition), 1, EPOCH, transition))
    finally:
        await endpoint.close()


async def test_only_the_given_authority_is_trusted(tmp_path):
    """Neither its certificates nor its own have key identifiers, as those of many clusters."""
    authority = Authority(tmp_path, "authority")
    pair = authority.issue("localhost", "localhost", "127.0.0.1")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(pair.certificate, pair.key)
    async with Receiver(tls=tls) as receiver:
        assert (await send(Hook("a", receiver.url, ca=authority.certificate))).error == ""
        refused = await send(Hook("a", receiver.url))
        assert "certificate" in refused.error.lower()
        assert not refused.permanent
        absent = await send(Hook("a", receiver.url, ca=tmp_path / "absent.pem"))
        assert "No such file" in absent.error
        assert len(receiver.bodies) == 1


def test_the_file_of_certificates_is_checked(tmp_path):
    Authority(tmp_path, "cert")
    file = tmp_path / "hooks.yaml"
    file.write_text("hooks: [{name: a, url: 'https://a', ca: cert.pem}]")
    assert load_hooks(file).hooks[0].ca == tmp_path / "cert.pem"
    file.write_text("hooks: [{name: a, url: 'https://a', ca: hooks.yaml}, {name: b, url: 'http://b', ca: cert.pem}]")
    with pytest.raises(HookConfigError) as caught:
        load_hooks(file)
    assert "give a file of PEM certificates" in caught.value.problems[0]
    assert caught.value.problems[1] == "hooks[1].ca: is for https, and url is http; give an https URL, or drop ca"
