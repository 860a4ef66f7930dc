"""Temporary folders of one process, for this user alone.

A process that is killed cannot remove its folder, so the next one does: a folder holds a file that is locked as long as
its process lives, and the kernel releases the lock with the process.
"""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

_LOCK = ".lock"


class PrivateFolder:
    """A new folder of mode 0700. `remove` it at the end, or `keep` it."""

    def __init__(self, prefix: str) -> None:
        """Also removes the folders of killed processes with this prefix. Raises OSError."""
        remove_stale(prefix)
        self.path = Path(tempfile.mkdtemp(prefix=prefix))
        unlocked = self.path / f"{_LOCK}.new"
        self._lock = os.open(unlocked, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        unlocked.rename(self.path / _LOCK)  # others see it only when it is locked

    def keep(self) -> None:
        """The folder outlives the process."""
        (self.path / _LOCK).unlink(missing_ok=True)
        self._release()

    def remove(self) -> None:
        """Idempotent; does nothing after `keep`."""
        if self._lock >= 0:
            shutil.rmtree(self.path, ignore_errors=True)
            self._release()

    def _release(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def remove_stale(prefix: str) -> None:
    """Remove this user's folders with the prefix whose processes have ended. Never raises."""
    for lock in Path(tempfile.gettempdir()).glob(f"{prefix}*/{_LOCK}"):
        try:
            if lock.parent.lstat().st_uid != os.geteuid() or lock.parent.is_symlink():
                continue
            descriptor = os.open(lock, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(lock.parent, ignore_errors=True)
            finally:
                os.close(descriptor)
        except OSError:  # its process lives, or another one is removing it
            continue
