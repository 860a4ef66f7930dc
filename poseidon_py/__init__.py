"""The bridge: the Kubernetes side of the scheduler, independent of the flow network."""

import os

# The bridge starts its flow service while gRPC has threads; every fork execs at once. gRPC reads this variable at its
# first use; without it, it prints a line about fork handlers at every such start.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")


def __getattr__(name: str) -> str:
    """`__version__`; what finds it takes as long to load as all else that a command needs, so only who asks waits."""
    if name != "__version__":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version("poseidon-firmament")
    except PackageNotFoundError:  # run from a source tree that is not installed
        return "0+unknown"
