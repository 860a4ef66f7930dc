"""A hash of sources, by which caches notice that the code has changed."""

import hashlib
from functools import cache
from pathlib import Path


@cache
def source_hash(folder: Path, *others: Path) -> str:
    """Of the modules in a folder, and of other files."""
    digest = hashlib.sha256()
    for path in (*sorted(folder.glob("*.py")), *others):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]
