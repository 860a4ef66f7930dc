"""The delay that a server requests is bounded."""

import pytest

from poseidon_py.kube.client import api_error
from poseidon_py.kube.requests.retry_after import MAX_SECONDS, retry_after


@pytest.mark.parametrize(
    ("header", "details", "seconds"),
    [
        pytest.param(None, None, None, id="nothing is said"),
        pytest.param(b"7", 3.0, 7.0, id="the header wins"),
        pytest.param(None, 3.0, 3.0, id="only the body says"),
        pytest.param("0", None, 0.0, id="at once"),
        pytest.param(b" 1.5 ", None, 1.5, id="a fraction"),
        pytest.param(b"3600", None, MAX_SECONDS, id="an hour"),
        pytest.param(b"9" * 400, None, None, id="more than a float holds"),
        pytest.param(None, 1e300, MAX_SECONDS, id="an age in the body"),
        pytest.param(b"inf", None, None, id="forever"),
        pytest.param(b"nan", 3.0, 3.0, id="no number, but the body says"),
        pytest.param(b"-5", None, None, id="before now"),
        pytest.param("Wed, 21 Oct 2026 07:28:00 GMT", 3.0, 3.0, id="a date"),
        pytest.param(b"\xff\xfe", None, None, id="no text"),
        pytest.param(b"", None, None, id="empty"),
    ],
)
def test_it_is_a_bounded_number_of_seconds_or_nothing(header, details, seconds):
    assert retry_after(header, details) == seconds


@pytest.mark.parametrize("message", [b"3600", b"inf", b"nan", b"1e9"])
def test_no_error_carries_a_pause_without_bounds(message):
    for error in (
        api_error(429, b"", message),
        api_error(503, b'{"kind": "Status", "details": {"retryAfterSeconds": 1000000}}'),
    ):
        assert error.retry_after is None or 0 <= error.retry_after <= MAX_SECONDS
