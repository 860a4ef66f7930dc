"""The bridge: everything that knows Kubernetes, and nothing that knows flow."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("poseidon-firmament")
except PackageNotFoundError:  # run from a tree that was never installed
    __version__ = "0+unknown"
