"""Signs deliveries, and verifies signatures as a receiver does.

    Poseidon-Signature: t=1767225600,v1=5257a869...

`v1` is the HMAC-SHA256, in hexadecimal digits, of the timestamp, a dot and the body, by a key that both sides have.
There is one `v1` for each key while keys are exchanged. The timestamp is that of the attempt, so that a receiver can
reject a recorded delivery that somebody sends again later.
"""

import hashlib
import hmac
import re
from collections.abc import Iterable

HEADER = "Poseidon-Signature"
TOLERANCE_SECONDS = 300
"""Difference of the clocks, and age, that `verify` accepts."""


class SignatureError(ValueError):
    """A signature is missing, malformed, too old, or not by a known key."""


def sign(keys: Iterable[bytes], timestamp: int, body: bytes) -> str:
    """The value of the header for a body that is sent at `timestamp`, in seconds since the epoch."""
    return ",".join([f"t={timestamp}", *(f"v1={_digest(key, str(timestamp), body)}" for key in keys)])


def verify(header: str, body: bytes, keys: Iterable[bytes], now: float, tolerance: float = TOLERANCE_SECONDS) -> None:
    """Check the signature of a body as it was received. Raises SignatureError.

    All comparisons take the same time wherever the texts differ.
    """
    fields = [part.strip().partition("=") for part in header.split(",")]
    timestamps = [value for name, _, value in fields if name == "t"]
    digests = [value for name, _, value in fields if name == "v1"]
    if len(timestamps) != 1 or not digests or not re.fullmatch("[0-9]{1,12}", timestamps[0]):
        raise SignatureError(f"the header {HEADER} has no timestamp or no signature; it is t=SECONDS,v1=HEX")
    expected = [_digest(key, timestamps[0], body).encode() for key in keys]
    found = [digest.encode() for digest in digests]
    if not any(hmac.compare_digest(one, other) for one in expected for other in found):
        raise SignatureError("the signature is not by a known key; compare the keys of sender and receiver")
    if abs(now - int(timestamps[0])) > tolerance:
        raise SignatureError(f"the signature is not of the last {tolerance:g} s; it is a replay, or a clock is wrong")


def _digest(key: bytes, timestamp: str, body: bytes) -> str:
    return hmac.new(key, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
