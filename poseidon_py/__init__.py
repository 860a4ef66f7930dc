"""The bridge: the Kubernetes side of the scheduler, independent of the flow network."""

import os
from importlib.metadata import PackageNotFoundError, version

# The bridge starts its flow service while gRPC has threads; every fork execs at once. gRPC reads this variable at its
# first use; without it, it prints a line about fork handlers at every such start.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

try:
    __version__ = version("poseidon-firmament")
except PackageNotFoundError:  # run from a source tree that is not installed
    __version__ = "0+unknown"
