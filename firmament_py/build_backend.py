"""Builds the package: setuptools, after the searches are compiled (firmament_py/compile_ahead.py).

A wheel contains what was compiled, for one version of Python and one kind of machine. `--config-settings compile=no`
leaves it out of an editable installation; `firmament compile` follows then, and shows how far it is.
"""

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
from setuptools.dist import Distribution

from firmament_py.compile_ahead import compile_stale

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
    found: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return found


def build_editable(
    wheel_directory: str, config_settings: _Settings = None, metadata_directory: str | None = None
) -> str:
    settings = dict(config_settings or {})
    if settings.pop("compile", "yes") != "no":
        compile_stale(print)
    found: str = build_meta.build_editable(wheel_directory, settings, metadata_directory)
    return found
