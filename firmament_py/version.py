"""The version of the distribution that this package was installed from."""

from importlib.metadata import PackageNotFoundError, version

try:
    VERSION = version("poseidon-firmament")
except PackageNotFoundError:  # run from a bare source tree
    VERSION = "0+unknown"
