"""Signatures, and the outcome by status and Retry-After."""

import hashlib
import hmac

import pytest

from poseidon_py.hooks.sending.outcome import DELIVERED, outcome_of, seconds_of
from poseidon_py.hooks.sending.signature import SignatureError, sign, verify

KEYS = (b"the first key of 32 bytes or more", b"the other key of 32 bytes or more")
BODY = b'{"id":"1"}'
NOW = 1_767_225_600


def test_the_documented_form():
    digest = hmac.new(KEYS[0], b"1767225600." + BODY, hashlib.sha256).hexdigest()
    assert sign(KEYS[:1], NOW, BODY) == f"t=1767225600,v1={digest}"


@pytest.mark.parametrize("known", [KEYS[:1], KEYS[1:], KEYS])
def test_each_key_verifies_while_keys_are_exchanged(known):
    verify(sign(KEYS, NOW, BODY), BODY, known, NOW + 200)


@pytest.mark.parametrize(
    ("header", "body", "now", "problem"),
    [
        pytest.param(sign(KEYS, NOW, BODY), BODY + b" ", NOW, "not by a known key", id="another body"),
        pytest.param(sign([b"x" * 32], NOW, BODY), BODY, NOW, "not by a known key", id="another key"),
        pytest.param(sign(KEYS, NOW, BODY), BODY, NOW + 301, "replay", id="too old"),
        pytest.param(sign(KEYS, NOW, BODY), BODY, NOW - 301, "replay", id="of the future"),
        pytest.param(sign(KEYS, NOW, BODY).replace("t=17", "t=18"), BODY, NOW, "not by a known", id="another time"),
        pytest.param("", BODY, NOW, "no timestamp", id="missing"),
        pytest.param(f"t={NOW}", BODY, NOW, "no signature", id="without a signature"),
        pytest.param("v1=00", BODY, NOW, "no timestamp", id="without a time"),
        pytest.param(f"t={NOW},t={NOW},v1=00", BODY, NOW, "no timestamp", id="two times"),
        pytest.param("t=-1,v1=00", BODY, NOW, "no timestamp", id="a negative time"),
        pytest.param("t=" + "9" * 5000 + ",v1=00", BODY, NOW, "no timestamp", id="an endless time"),
        pytest.param(f"t={NOW},v1=\u00e4", BODY, NOW, "not by a known", id="not ASCII"),
    ],
)
def test_what_is_not_genuine(header, body, now, problem):
    with pytest.raises(SignatureError, match=problem):
        verify(header, body, KEYS, now)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_delivered(status):
    assert outcome_of(status, "", None, NOW) == DELIVERED


@pytest.mark.parametrize(
    ("status", "permanent"),
    [
        (300, True),
        (301, True),
        (307, True),
        (400, True),
        (401, True),
        (404, True),
        (410, True),
        (422, True),
        (408, False),
        (425, False),
        (429, False),
        (500, False),
        (502, False),
        (503, False),
        (599, False),
    ],
)
def test_which_errors_are_permanent(status, permanent):
    outcome = outcome_of(status, "why", "10", NOW)
    assert (bool(outcome.error), outcome.permanent) == (True, permanent)
    assert outcome.pause == (10.0 if status in (429, 503) else None)


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("-1", None),
        ("1e9", None),
        ("nan", None),
        ("120", 120.0),
        (" 7 ", 7.0),
        ("9" * 5000, 999_999_999_999.0),
        ("Thu, 01 Jan 2026 00:01:00 GMT", 60.0),
        ("Wed, 31 Dec 2025 00:00:00 GMT", 0.0),
        ("Thu, 99 Jan 2026 00:01:00 GMT", None),
    ],
)
def test_retry_after(header, seconds):
    assert seconds_of(header, NOW) == seconds
