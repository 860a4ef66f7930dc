"""The files that settings name. Certificates are checked whenever settings are loaded (loading.py); the other ones only
by `poseidon config check`, since they may appear, or change, while the scheduler runs."""

import os
from collections.abc import Iterator

from poseidon_py.config.fields import FIELDS
from poseidon_py.config.layout import PLACES
from poseidon_py.config.settings import Settings
from poseidon_py.hooks.config.loading import HookConfigError, load_hooks

_FILES = ("kubeconfig", "prometheus_token_file", "yunikorn_queues", "hooks")


def problems_of_files(given: Settings) -> Iterator[str]:
    """What is wrong with the files that are no certificates: missing or unreadable ones, and invalid hooks."""
    for name in _FILES:
        file = getattr(given, name)
        if file is None:
            continue
        if not file.is_file() or not os.access(file, os.R_OK):
            state = "cannot be read" if file.is_file() else "is not there"
            yield f"the file {file} {state}; correct {'.'.join(PLACES[name])} ({FIELDS[name].key}), or the file"
        elif name == "hooks":
            try:
                load_hooks(file)
            except HookConfigError as error:
                yield from (f"{problem}, in {file}" for problem in error.problems)
