"""The frames of direct calls: the frequent calls of firmament.FlowScheduler without gRPC, inside a machine.

A flow service at `unix:PATH` without TLS answers the calls in METHODS on the stream socket PATH.direct, too:

    call    length of the message (u32)   number of the method (u8)            message
    reply   length of what follows (u32)  0: the call has failed, 1: it has not (u8)
                                          message; if it has failed, the name of a gRPC status, a space, details

Numbers are in network byte order. A connection carries one call at a time. A caller that no longer waits closes it.
"""

from struct import Struct

SUFFIX = ".direct"
"""Of the path of the socket."""
METHODS = ("Apply", "Round")
"""By number."""
HEAD = Struct("!IB")
MAX_BYTES = 1 << 30
"""Of one message."""
FAILED, DONE = 0, 1


def frame(kind: int, body: bytes) -> bytes:
    """A call or a reply. kind: the number of the method, FAILED or DONE."""
    return HEAD.pack(len(body), kind) + body


def failure(code: str, details: str) -> bytes:
    """The body of a reply to a call that has failed. code: the name of a gRPC status."""
    return f"{code} {details}".encode()


def failure_of(body: bytes) -> tuple[str, str]:
    """The code and the details of a failure."""
    code, _, details = body.decode(errors="replace").partition(" ")
    return code, details
