"""Which transport reaches an address."""

from poseidon_py.feed.transport.transport import Tls, Transport
from protos.addresses import DIRECT


def transport_to(address: str, tls: Tls | None, grace_seconds: float) -> Transport:
    """`tls`: for a service that is not at direct:PATH. `grace_seconds`: how long calls in flight on a connection with
    former certificates may go on. Raises OSError if a certificate cannot be read."""
    if address.startswith(DIRECT):
        from poseidon_py.feed.transport.direct import DirectTransport

        return DirectTransport(address.removeprefix(DIRECT))
    from poseidon_py.feed.transport.over_grpc import GrpcTransport

    return GrpcTransport(address, tls, grace_seconds)
