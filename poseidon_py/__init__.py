"""The bridge: everything that knows Kubernetes, and nothing that knows flow."""

import os
from importlib.metadata import PackageNotFoundError, version

# The bridge starts its flow service while gRPC has threads, and no fork goes on as a copy of the bridge. gRPC reads
# this when it is first used; otherwise it prints a line about fork handlers at every such start.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")

try:
    __version__ = version("poseidon-firmament")
except PackageNotFoundError:  # run from a tree that was never installed
    __version__ = "0+unknown"
