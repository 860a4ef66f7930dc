"""What settings are called in messages about several of them: as the user wrote them."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from poseidon_py.config.fields import FIELDS
from poseidon_py.config.layout import PATHS


class DocumentValues(dict[str, Any]):
    """The values of a PoseidonConfiguration, by field of Settings."""


class Names:
    """A name for each field: the flag, if that was given or there is no file; else the path in a PoseidonConfiguration,
    or the key of an older file."""

    def __init__(self, config: Mapping[str, Any], flags: Mapping[str, Any], file: Path | str) -> None:
        """`file`: the origin of `config`."""
        self._config = config
        self._flags = flags
        self._file = str(file)

    def __call__(self, name: str) -> str:
        """`name`: a field of Settings."""
        if self._flags.get(name) not in (None, ()) or not self._config:
            return f"--{FIELDS[name].key}"
        return PATHS[name] if isinstance(self._config, DocumentValues) else FIELDS[name].key

    def located(self, problem: str) -> str:
        """The problem, with the file in front if it names a setting of the file."""
        of_file = any(self(name) in problem for name in self._config)
        return f"{self._file}: {problem}" if of_file else problem
