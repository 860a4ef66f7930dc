"""The frames of direct calls: the calls of firmament.FlowScheduler without gRPC, inside a machine.

A flow service at `direct:PATH` answers on the stream socket PATH. A frame is

    length of the body (u32)   kind (u8)   body

in network byte order. A call is a frame CALL with the method's name, a frame MESSAGE for each of its messages, and END;
its reply is a frame DONE with the message, or FAILED with the name of a gRPC status, a space, details. A connection
carries one call at a time, and the next one after the reply. A reply may come before END; the caller
need not send the messages that are left, and closes the connection then. A caller that no longer waits closes it, too.
"""

from struct import Struct

HEAD = Struct("!IB")
MAX_BYTES = 1 << 30
"""Of one message."""
CALL, MESSAGE, END, DONE, FAILED = range(5)


def frame(kind: int, body: bytes = b"") -> bytes:
    return HEAD.pack(len(body), kind) + body


def call(method: str) -> bytes:
    """Begins a call."""
    return frame(CALL, method.encode())


def unary(method: str, message: bytes) -> bytes:
    """A whole call with one message."""
    return b"".join((call(method), HEAD.pack(len(message), MESSAGE), message, frame(END)))


def failure(code: str, details: str) -> bytes:
    """The body of a reply to a call that has failed. code: the name of a gRPC status."""
    return f"{code} {details}".encode()


def failure_of(body: bytes) -> tuple[str, str]:
    """The code and the details of a failure."""
    code, _, details = body.decode(errors="replace").partition(" ")
    return code, details
