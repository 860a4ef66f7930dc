"""Where compiled functions are kept: folders whose names change with all that they depend on."""

import platform
import sys
from functools import cache
from importlib.metadata import version
from importlib.util import source_hash
from pathlib import Path

_HERE = Path(__file__).parent

COMPILED = _HERE / "compiled"
"""A folder for each package; see `folder_of`."""


@cache
def folder_of(package: Path) -> Path:
    """Where the functions of a package are, once they are compiled. numba checks only the file that contains a
    function, but compiled code includes constants and inlined functions of other modules, and with an old layout of an
    array it would read the wrong memory."""
    # not hashlib's, which loads OpenSSL: 4 MB of an engine
    files = (*sorted(package.glob("*.py")), _HERE / "numba_cache.py")
    digest = source_hash(b"".join(source_hash(path.name.encode() + b"\0" + path.read_bytes()) for path in files))
    machine = f"{platform.system()}-{platform.machine()}".lower()
    python = sys.implementation.cache_tag
    return COMPILED / f"{package.name}-{digest.hex()[:12]}-{python}-numba-{version('numba')}-{machine}"
