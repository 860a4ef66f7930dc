"""Builds the package: setuptools, after the searches are compiled (firmament_py/compile_ahead.py).

A wheel contains what was compiled, for one version of Python and one kind of machine. `--config-settings compile=no`
leaves it out of an editable installation; `firmament compile` follows then, and shows how far it is.
"""

import os
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from setuptools import build_meta
from setuptools.build_meta import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)
from setuptools.command.build_py import build_py
from setuptools.dist import Distribution

from firmament_py.compile_ahead import PACKAGES, compile_stale
from firmament_py.compiled_folder import COMPILED, folder_of

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

_Settings = dict[str, Any] | None


def build_wheel(wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None) -> str:
    compile_stale(print)
    distribution: Any = Distribution
    distribution.has_ext_modules = lambda self: True  # the wheel is for this platform
    command: Any = build_py
    command.find_data_files = _without_other_versions(command.find_data_files)
    with TemporaryDirectory() as folder:  # what an earlier build has left in the checkout would be in the wheel
        settings = Path(folder, "settings.cfg")
        settings.write_text(f"[build]\nbuild_base = {folder}\n")
        os.environ["DIST_EXTRA_CONFIG"] = str(settings)
        found: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return found


def _without_other_versions(find: Callable[..., list[str]]) -> Callable[..., list[str]]:
    """`find` without what is compiled for other versions of Python or numba: a checkout can have several."""
    compiled = COMPILED.resolve()
    current = {folder_of(COMPILED.parent / name).resolve() for name in PACKAGES}

    def is_current(path: Path) -> bool:
        return compiled not in path.parents or path.parent in current

    return lambda self, package, folder: [
        each for each in find(self, package, folder) if is_current(Path(each).resolve())
    ]


def build_editable(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None
) -> str:
    settings = dict(config_settings or {})
    if settings.pop("compile", "yes") != "no":
        compile_stale(print)
    found: str = build_meta.build_editable(wheel_directory, settings, metadata_directory)
    return found
