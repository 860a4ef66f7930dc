"""Settings from flags and a configuration file, validated. Flags take precedence."""

import ssl
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from poseidon_py.config.conversion import OptionError, converted
from poseidon_py.config.fields import FIELDS, number_text
from poseidon_py.config.settings import Settings
from poseidon_py.describe.bandwidth import capacity
from poseidon_py.describe.selectors import node_selector
from poseidon_py.kube import credentials
from poseidon_py.kube.credentials import CredentialsError
from poseidon_py.kube.objects import InvalidField, RequiredTerms
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from poseidon_py.state.preemption.preemption_rules import PreemptionRules
from poseidon_py.usage.prometheus import QUERIES
from protos.gen import firmament_pb2

_SERVICE_ONLY = (
    "policy",
    "policy_option",
    "usage",
    "usage_samples",
    "usage_half_life",
    "usage_stale",
    "stats_address",
    "improve",
    "preemption",
    "preempt_beyond_budgets",
    "migrate",
    "migrate_after",
    "moves_at_once",
    "moves_per_hour",
)
"""Settings of the supervised flow service, which cannot be applied to an external one."""


def settings(config: Mapping[str, Any], flags: Mapping[str, Any], file: Path | str = "the configuration") -> Settings:
    """Validated settings from the keys of a file and from flags; None and () stand for a flag that is not given.

    `file`: the origin of `config`, for messages. Raises OptionError.
    """
    named = [(key, value, f"{FIELDS[key].key} in {file}") for key, value in config.items()]
    named += [(key, value, f"--{FIELDS[key].key}") for key, value in flags.items() if value is not None and value != ()]
    given = {key: converted(FIELDS[key], value, name) for key, value, name in named}
    result = Settings(**given)
    try:
        _check(result)
    except OptionError as error:
        raise OptionError(*(f"{file}: {problem}" if config else problem for problem in error.problems)) from error
    return result


def usage_interval(given: Settings) -> float | None:
    """Seconds between polls of usage; 0: never; None: as the flow service needs it."""
    return 0.0 if given.usage_interval == "off" else given.usage_interval


def service_arguments(given: Settings) -> list[str]:
    """The arguments of the supervised flow service."""
    options = {
        "--usage": given.usage,
        "--usage-samples": given.usage_samples,
        "--usage-half-life": given.usage_half_life,
        "--usage-stale": given.usage_stale,
        "--reserve-after": given.gang_reserve_after,
        "--improve": given.improve,
        "--stats-address": given.stats_address or None,
        "--preemption": "off" if given.preemption == "off" else None,  # on is the default of the service, too
        "--migrate": given.migrate if given.migrate != "for-waiting" else None,  # likewise
        "--migrate-after": given.migrate_after,
        "--moves-at-once": given.moves_at_once,
        "--moves-per-hour": given.moves_per_hour,
    }
    found: list[str] = []
    for flag, value in options.items():
        if value is not None:
            found += [flag, number_text(value) if isinstance(value, float) else str(value)]
    if given.preempt_beyond_budgets:
        found.append("--preempt-beyond-budgets")
    return [*found, *given.firmament_args]


def added_affinity(given: Settings) -> firmament_pb2.NodeSelector | None:
    """The node affinity that is required of every pod. Raises InvalidField."""
    if given.added_node_affinity is None:
        return None
    try:
        required = msgspec.convert(given.added_node_affinity, RequiredTerms)
    except msgspec.ValidationError as error:
        raise InvalidField("nodeSelectorTerms", str(error)) from error
    if not required.terms:
        raise InvalidField("nodeSelectorTerms", "is empty, so no node would match; give at least one term")
    return node_selector(required.terms, "nodeSelectorTerms", strict=True)


def link_bandwidth(given: Settings) -> int | None:
    """Bits per second of a link without a declared capacity; None: no limit. Raises InvalidField."""
    return capacity(given.link_bandwidth, "link-bandwidth") if given.link_bandwidth else None


def preemption_rules(given: Settings) -> PreemptionRules:
    """Which pods may be preempted, and after which notice."""
    protected = {name.strip() for text in given.protected_priority_classes for name in text.split(",")}
    return PreemptionRules(given.preemption_notice, given.longest_preemption_notice, frozenset(protected - {""}))


def gang_owners(given: Settings) -> tuple[str, ...]:
    """The kinds of owners, names of OWNER_KINDS, whose pods are gangs without a declaration. Raises OptionError."""
    names = [name.strip().lower() for text in given.gangs_from for name in text.split(",")]
    known = [*OWNER_KINDS, "all", "none"]
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"give some of {', '.join(known)}"
            raise OptionError(f"gangs-from has an unknown kind {name!r}; {hint}")
    if len(set(names)) > 1 and (alone := {"all", "none"}.intersection(names)):
        raise OptionError(f"gangs-from has {min(alone)!r} beside other kinds; give either")
    return tuple(OWNER_KINDS) if "all" in names else tuple(name for name in OWNER_KINDS if name in names)


def _check(given: Settings) -> None:
    """Validate what the types do not express, and combinations of settings. Raises OptionError."""
    if not all(given.scheduler_name) or not given.scheduler_name:
        raise OptionError("scheduler-name is empty; give the spec.schedulerName of the pods to schedule")
    if not given.lease_duration > given.renew_deadline > 1.2 * given.retry_period:
        raise OptionError(
            f"lease-duration ({number_text(given.lease_duration)}) must be more than renew-deadline "
            f"({number_text(given.renew_deadline)}), and that more than 1.2 times retry-period "
            f"({number_text(given.retry_period)})"
        )
    try:
        link_bandwidth(given)
    except InvalidField as error:
        raise OptionError(f"{error}") from error
    try:
        added_affinity(given)
    except InvalidField as error:
        raise OptionError(f"added-node-affinity: {error}") from error
    for option in given.policy_option:
        if "=" not in option:
            raise OptionError(f"policy-option is {option!r}; give it as K=V")
    gang_owners(given)
    wildcards = {"", "0.0.0.0", "::"}
    addresses = {given.health_address, given.bind_address}
    if given.health_port == given.secure_port > 0 and (len(addresses) == 1 or addresses & wildcards):
        raise OptionError(f"health-port and secure-port are both {given.health_port}; give different ports")
    if given.firmament_address:
        _check_external(given)
    _check_usage(given)
    _check_tls(given)


def _check_external(given: Settings) -> None:
    """Reject settings of the flow service if an external one is used. Raises OptionError."""
    named = {name: FIELDS[name].key for name in _SERVICE_ONLY} | {"gang_reserve_after": "reserve-after"}
    for name, flag in named.items():
        if getattr(given, name) != FIELDS[name].default:
            raise OptionError(
                f"{FIELDS[name].key} belongs to the flow service: give --{flag} to `firmament serve`, not beside "
                "firmament-address"
            )


def _check_tls(given: Settings) -> None:
    """Validate the TLS files: gRPC does not report unusable ones, every call would fail as unavailable."""
    certificate, key = given.firmament_cert, given.firmament_key
    if (given.firmament_ca or certificate or key) and not (given.firmament_address and given.firmament_ca):
        raise OptionError("firmament-cert and firmament-key need firmament-ca, and that needs firmament-address")
    if (certificate is None) != (key is None):
        raise OptionError("firmament-cert and firmament-key go together")
    if (given.tls_cert_file is None) != (given.tls_private_key_file is None):
        raise OptionError("tls-cert-file and tls-private-key-file go together")
    _check_pair("tls-cert-file", given.tls_cert_file, "tls-private-key-file", given.tls_private_key_file)
    _check_certificates("firmament-ca", given.firmament_ca)
    _check_pair("firmament-cert", certificate, "firmament-key", key)


def _check_pair(cert_option: str, certificate: Path | None, key_option: str, key: Path | None) -> None:
    """Raises OptionError if the two do not belong together."""
    if certificate is None or key is None:
        return
    _check_certificates(cert_option, certificate)
    _check_file(key_option, key)
    context = _tls_context()
    try:
        context.load_cert_chain(certificate, key, password=lambda: "")
    except OSError as error:  # of which SSLError is one
        if getattr(error, "reason", "") == "KEY_VALUES_MISMATCH":
            raise OptionError(
                f"{key_option} {key} is not the key of {cert_option} {certificate}; give the two that belong together"
            ) from error
        raise OptionError(
            f"{key_option} {key} cannot be used ({_why(error)}); give a PEM key without a password"
        ) from error


def _check_certificates(option: str, file: Path | None) -> None:
    """Raises OptionError if the file of this option contains no certificates."""
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
    """The reason, without the location in OpenSSL's source."""
    reason = getattr(error, "reason", None)
    if reason:
        return str(reason).replace("_", " ").lower()
    return (error.strerror or str(error)).removeprefix("[SSL] ").partition(" (_ssl.c:")[0]


def _tls_context() -> ssl.SSLContext:
    """A context that accepts keys of any length: their strength is not validated here."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_ciphers("ALL:@SECLEVEL=0")
    return context


def _check_usage(given: Settings) -> None:
    if not given.prometheus_url:
        for key in ("prometheus_token_file", "prometheus_ca", "prometheus_queries"):
            if getattr(given, key) is not None:
                raise OptionError(f"{key.replace('_', '-')} needs prometheus-url")
        return
    if "@" in given.prometheus_url:  # which is not shown: it may have a password
        raise OptionError(
            "prometheus-url has a user or a password before the @, which are not sent; drop them, and give a bearer "
            "token by prometheus-token-file"
        )
    try:
        credentials.at(given.prometheus_url)
    except CredentialsError as error:
        url = given.prometheus_url
        raise OptionError(f"prometheus-url must be like http://HOST:PORT or https://HOST, not {url!r}") from error
    for name in given.prometheus_queries or {}:
        if name not in QUERIES:
            raise OptionError(f"prometheus-queries has an unknown key {name!r}; there are: {', '.join(QUERIES)}")
    _check_certificates("prometheus-ca", given.prometheus_ca)
