"""From flags and a configuration file to Settings. Flags win; a key that nobody knows is an error."""

import math
import ssl
import types
import typing
from collections.abc import Mapping
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec
import yaml

from poseidon_py.config.settings import Settings
from poseidon_py.describe.bandwidth import capacity
from poseidon_py.describe.selectors import node_selector
from poseidon_py.kube import credentials
from poseidon_py.kube.credentials import CredentialsError
from poseidon_py.kube.objects import InvalidField, RequiredTerms
from poseidon_py.usage.prometheus import QUERIES
from poseidon_py.util.logs import FORMATS, LEVELS
from protos.gen import firmament_pb2


class OptionError(Exception):
    """The configuration is wrong; the message names the key and what to do."""


_TYPES = typing.get_type_hints(Settings)
_STRUCTURES = ("added_node_affinity", "prometheus_queries")
_NUMBERS_OR_WORDS = ("usage_interval", "gang_reserve_after")
_ALIASES = {"policyOptions": "policy_option", "policy_options": "policy_option"}
BASES = ("requests", "used", "larger")
"""What `usage` may be."""
KEYS = tuple(field.name for field in fields(Settings))
_POSITIVE = (
    "gang_timeout",
    "volume_timeout",
    "bind_timeout",
    "watch_timeout",
    "watch_silence",
    "rpc_timeout",
    "startup_timeout",
)
_NOT_NEGATIVE = ("bind_patience", "batch_window", "batch_window_max", "event_rate", "shutdown_timeout")


def read_file(path: Path) -> dict[str, Any]:
    """The settings in a YAML file, checked. Raises OptionError."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise OptionError(f"cannot read the configuration {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise OptionError(f"the configuration {path} is not text in UTF-8; save --config as YAML in UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:  # ValueError: a date that is none
        raise OptionError(f"the configuration {path} is not YAML: {' '.join(str(error).split())}") from error
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise OptionError(f"the configuration {path} is not a mapping of keys to values")
    found: dict[str, Any] = {}
    for name, value in content.items():
        key = key_of(str(name), str(path))
        if key in found:
            raise OptionError(f"{name!r} in {path} says {key.replace('_', '-')} a second time; keep one of the two")
        found[key] = value
    return found


def key_of(name: str, where: str) -> str:
    """The field of Settings that a key with dashes or underscores means."""
    key = name.replace("-", "_")
    key = _ALIASES.get(key, key)
    if key not in KEYS:
        close = get_close_matches(key, KEYS, n=1)
        hint = f"did you mean {close[0].replace('_', '-')!r}?" if close else "see `poseidon run --help`"
        raise OptionError(f"unknown key {name!r} in {where}; {hint}")
    return key


def settings(config: Mapping[str, Any], flags: Mapping[str, Any]) -> Settings:
    """Settings from a file's keys and the flags that were given; None and () mean that a flag was not."""
    given = {key: _convert(key, value) for key, value in config.items()}
    given |= {key: _given(key, value) for key, value in flags.items() if value is not None and value != ()}
    result = Settings(**given)
    _check(result)
    return result


def _given(key: str, value: Any) -> Any:
    return _mapping(key, value) if key in _STRUCTURES else value


def usage_interval(given: Settings) -> float | None:
    """Seconds between polls of usage; 0: none; None: by what the flow service wants. Raises OptionError."""
    if not given.usage_interval:
        return None
    if given.usage_interval == "off":
        return 0.0
    try:
        seconds = float(given.usage_interval)
    except ValueError:
        seconds = 0.0
    if not 1.0 <= seconds <= 86400.0:
        raise OptionError(f"usage-interval must be off, or seconds from 1 to 86400, not {given.usage_interval!r}")
    return seconds


def _check_reserving(given: Settings) -> None:
    if not given.gang_reserve_after:
        return
    if given.firmament_address:
        raise OptionError(
            "gang-reserve-after belongs to the flow service: give --reserve-after to `firmament serve`, not beside "
            "firmament-address"
        )
    try:
        seconds = 0.0 if given.gang_reserve_after == "never" else float(given.gang_reserve_after)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= 1e9:
        raise OptionError(f"gang-reserve-after must be never, or seconds from 0 on, not {given.gang_reserve_after!r}")


def service_arguments(given: Settings) -> list[str]:
    """What the own flow service is started with because of these settings."""
    options = {
        "--usage": given.usage,
        "--usage-samples": given.usage_samples,
        "--usage-half-life": given.usage_half_life,
        "--usage-stale": given.usage_stale,
        "--reserve-after": given.gang_reserve_after,
    }
    found = [text for flag, value in options.items() if value not in ("", None) for text in (flag, str(value))]
    return [*found, *given.firmament_args]


def _convert(key: str, value: Any) -> Any:
    if key == "usage_interval":  # YAML takes off for false
        value = "off" if value is False else value
    if key in _NUMBERS_OR_WORDS and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = str(value)
    wanted = _TYPES[key]
    options = typing.get_args(wanted) if isinstance(wanted, types.UnionType) else (wanted,)
    if value is None and type(None) in options:
        return None
    kind = next(option for option in options if option is not type(None))
    if typing.get_origin(kind) is tuple:
        if key == "policy_option" and isinstance(value, dict):
            return tuple(_policy_option(name, each) for name, each in value.items())
        items = value if isinstance(value, list) else [value]
        if all(isinstance(item, (str, int, float)) for item in items):
            return tuple(str(item) for item in items)
    elif typing.get_origin(kind) is Mapping:
        return _mapping(key, value)
    elif kind is Path and isinstance(value, str):
        return Path(value)
    elif kind is float and isinstance(value, (int, float)) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:  # a whole number may have any length
            return math.inf
    elif isinstance(value, kind) and not (kind is int and isinstance(value, bool)):
        return value
    name = "list" if typing.get_origin(kind) is tuple else {Path: "path", float: "number"}.get(kind, kind.__name__)
    raise OptionError(f"{key.replace('_', '-')} must be a {name}, not {value!r}")


def _policy_option(name: Any, value: Any) -> str:
    """K=V, as the flag takes it, of an entry of policyOptions."""
    if isinstance(value, bool):
        value = str(value).lower()
    if not isinstance(value, (str, int, float)):
        raise OptionError(f"policyOptions.{name} is {value!r}; give a text, a number, true or false")
    return f"{name}={value}"


def added_affinity(given: Settings) -> firmament_pb2.NodeSelector | None:
    """The node affinity that is demanded of every pod. Raises InvalidField."""
    if given.added_node_affinity is None:
        return None
    try:
        required = msgspec.convert(given.added_node_affinity, RequiredTerms)
    except msgspec.ValidationError as error:
        raise InvalidField("nodeSelectorTerms", str(error)) from error
    if not required.terms:
        raise InvalidField("nodeSelectorTerms", "is empty: no node would ever do")
    return node_selector(required.terms, "nodeSelectorTerms", strict=True)


def _mapping(key: str, value: Any) -> Mapping[str, Any]:
    """A setting that is a structure; as text (a flag) it is JSON or YAML."""
    try:
        found = yaml.safe_load(value) if isinstance(value, str) else value
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise OptionError(f"{key.replace('_', '-')} is not YAML: {' '.join(str(error).split())}") from error
    if not isinstance(found, dict):
        raise OptionError(f"{key.replace('_', '-')} must be a mapping, not {found!r}")
    return found


def link_bandwidth(given: Settings) -> int | None:
    """Bits a second of a link that is not stated; None: no limit. Raises InvalidField."""
    return capacity(given.link_bandwidth, "link-bandwidth") if given.link_bandwidth else None


def _check(given: Settings) -> None:
    if not all(given.scheduler_name) or not given.scheduler_name:
        raise OptionError("scheduler-name must not be empty")
    for key in KEYS:
        value = getattr(given, key)
        if isinstance(value, float) and not math.isfinite(value):
            raise OptionError(f"{key.replace('_', '-')} must be a finite number, not {value}")
    if not given.lease_duration > given.renew_deadline > 1.2 * given.retry_period > 0:
        raise OptionError("lease-duration > renew-deadline > 1.2 * retry-period > 0 must hold")
    for key in ("bind_concurrency", "batch_size", "pod_workers", "node_workers", "event_concurrency", "list_page"):
        if getattr(given, key) < 1:
            raise OptionError(f"{key.replace('_', '-')} must be 1 or more")
    if given.gang_unwind not in ("evict", "keep"):
        raise OptionError(f"gang-unwind must be evict or keep, not {given.gang_unwind!r}")
    if given.bandwidth not in ("on", "off", "auto"):
        raise OptionError(f"bandwidth must be on, off or auto, not {given.bandwidth!r}")
    try:
        link_bandwidth(given)
    except InvalidField as error:
        raise OptionError(f"{error}") from error
    for key in _POSITIVE:
        if getattr(given, key) <= 0:
            raise OptionError(f"{key.replace('_', '-')} must be more than 0 seconds, not {getattr(given, key)}")
    for key in _NOT_NEGATIVE:
        if getattr(given, key) < 0:
            raise OptionError(f"{key.replace('_', '-')} must be 0 or more, not {getattr(given, key)}")
    try:
        added_affinity(given)
    except InvalidField as error:
        raise OptionError(f"added-node-affinity: {error}") from error
    if given.log_level not in LEVELS:
        raise OptionError(f"log-level must be one of {', '.join(LEVELS)}, not {given.log_level!r}")
    if given.log_format not in FORMATS:
        raise OptionError(f"log-format must be one of {', '.join(FORMATS)}, not {given.log_format!r}")
    if not -1 <= given.health_port <= 65535:
        raise OptionError("health-port must be a port, 0 for any free one, or -1 for none")
    if given.firmament_address and (given.policy or given.policy_option):
        raise OptionError(
            "policy belongs to the flow service: give it to `firmament serve`, not beside firmament-address"
        )
    _check_usage(given)
    _check_reserving(given)
    _check_tls(given)
    for option in given.policy_option:
        if "=" not in option:
            raise OptionError(f"policy-option {option!r} is not of the form K=V")


def _check_tls(given: Settings) -> None:
    """gRPC says nothing of files that it cannot use: each call would fail as if nobody were there."""
    certificate, key = given.firmament_cert, given.firmament_key
    if (given.firmament_ca or certificate or key) and not (given.firmament_address and given.firmament_ca):
        raise OptionError("firmament-cert and firmament-key need firmament-ca, and that needs firmament-address")
    if (certificate is None) != (key is None):
        raise OptionError("firmament-cert and firmament-key go together")
    _check_certificates("firmament-ca", given.firmament_ca)
    if certificate is None or key is None:
        return
    _check_certificates("firmament-cert", certificate)
    _check_file("firmament-key", key)
    context = _tls_context()
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:  # of which SSLError is one
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise OptionError(
                f"firmament-key {key} is not the key of firmament-cert {certificate}; give the two that belong together"
            ) from error
        raise OptionError(
            f"firmament-key {key} cannot be used ({_why(error)}); give a PEM key without a password"
        ) from error


def _check_certificates(option: str, file: Path | None) -> None:
    """Raises OptionError if what this option names holds no certificates."""
    if file is None:
        return
    _check_file(option, file)
    try:
        _tls_context().load_verify_locations(file)
    except OSError as error:  # of which SSLError is one
        raise OptionError(
            f"{option} {file} cannot be used ({_why(error)}); give a readable file of PEM certificates"
        ) from error


def _check_file(option: str, file: Path) -> None:
    if not file.is_file():
        raise OptionError(f"there is no file {file}; correct {option}")


def _why(error: OSError) -> str:
    """In words, without the place in OpenSSL's source."""
    reason = getattr(error, "reason", None)
    if reason:
        return str(reason).replace("_", " ").lower()
    return (error.strerror or str(error)).removeprefix("[SSL] ").partition(" (_ssl.c:")[0]


def _tls_context() -> ssl.SSLContext:
    """Whether a key is long enough is left to who uses it."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def _check_usage(given: Settings) -> None:
    own = {name: getattr(given, name) for name in ("usage", "usage_samples", "usage_half_life", "usage_stale")}
    if given.firmament_address and any(value not in ("", None) for value in own.values()):
        raise OptionError(
            "usage, usage-samples, usage-half-life and usage-stale belong to the flow service: give them to "
            "`firmament serve`, not beside firmament-address"
        )
    if given.usage not in ("", *BASES):
        raise OptionError(f"usage must be one of {', '.join(BASES)}, not {given.usage!r}")
    usage_interval(given)
    if not given.prometheus_url:
        for key in ("prometheus_token_file", "prometheus_ca", "prometheus_queries"):
            if getattr(given, key) is not None:
                raise OptionError(f"{key.replace('_', '-')} needs prometheus-url")
        return
    try:
        credentials.at(given.prometheus_url)
    except CredentialsError as error:
        url = given.prometheus_url
        raise OptionError(f"prometheus-url must be like http://HOST:PORT or https://HOST, not {url!r}") from error
    for name, query in (given.prometheus_queries or {}).items():
        if name not in QUERIES:
            raise OptionError(f"prometheus-queries has an unknown key {name!r}; there are: {', '.join(QUERIES)}")
        if not isinstance(query, str):
            raise OptionError(f"prometheus-queries: {name} must be a query as text, or empty, not {query!r}")
    _check_certificates("prometheus-ca", given.prometheus_ca)
