"""Settings from flags and a configuration file, validated. Flags take precedence."""

from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import msgspec

from poseidon_py.config.conversion import OptionError, converted
from poseidon_py.config.fields import FIELDS, number_text
from poseidon_py.config.names import Names
from poseidon_py.config.settings import Settings
from poseidon_py.describe.bandwidth import capacity
from poseidon_py.describe.selectors import node_selector
from poseidon_py.kube import credentials
from poseidon_py.kube.credentials import CredentialsError
from poseidon_py.kube.objects import InvalidField, RequiredTerms
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from poseidon_py.state.preemption.preemption_rules import PreemptionRules
from poseidon_py.usage.prometheus import QUERIES
from protos.addresses import DIRECT, is_local
from protos.gen import firmament_pb2
from protos.pem_files import PemFileError, check_certificates, check_pair

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
    names = Names(config, flags, file)
    try:
        _check(result, names)
    except OptionError as error:
        raise OptionError(*map(names.located, error.problems)) from error
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
    if given.firmament_insecure:
        found.append("--insecure")
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


def link_bandwidth(given: Settings, name: str = "link-bandwidth") -> int | None:
    """Bits per second of a link without a declared capacity; None: no limit. Raises InvalidField."""
    return capacity(given.link_bandwidth, name) if given.link_bandwidth else None


def preemption_rules(given: Settings) -> PreemptionRules:
    """Which pods may be preempted, and after which notice."""
    protected = {name.strip() for text in given.protected_priority_classes for name in text.split(",")}
    return PreemptionRules(given.preemption_notice, given.longest_preemption_notice, frozenset(protected - {""}))


def gang_owners(given: Settings, setting: str = "gangs-from") -> tuple[str, ...]:
    """The kinds of owners, names of OWNER_KINDS, whose pods are gangs without a declaration. Raises OptionError."""
    names = [name.strip().lower() for text in given.gangs_from for name in text.split(",")]
    known = [*OWNER_KINDS, "all", "none"]
    for name in names:
        if name not in known:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"give some of {', '.join(known)}"
            raise OptionError(f"{setting} has an unknown kind {name!r}; {hint}")
    if len(set(names)) > 1 and (alone := {"all", "none"}.intersection(names)):
        raise OptionError(f"{setting} has {min(alone)!r} beside other kinds; give either")
    return tuple(OWNER_KINDS) if "all" in names else tuple(name for name in OWNER_KINDS if name in names)


def _check(given: Settings, named: Names) -> None:
    """Validate what the types do not express, and combinations of settings. Raises OptionError."""
    if not all(given.scheduler_name) or not given.scheduler_name:
        raise OptionError(f"{named('scheduler_name')} is empty; give the spec.schedulerName of the pods to schedule")
    if not given.lease_duration > given.renew_deadline > 1.2 * given.retry_period:
        raise OptionError(
            f"{named('lease_duration')} ({number_text(given.lease_duration)}) must be more than "
            f"{named('renew_deadline')} ({number_text(given.renew_deadline)}), and that more than 1.2 times "
            f"{named('retry_period')} ({number_text(given.retry_period)})"
        )
    try:
        link_bandwidth(given, named("link_bandwidth"))
    except InvalidField as error:
        raise OptionError(f"{error}") from error
    try:
        added_affinity(given)
    except InvalidField as error:
        raise OptionError(f"{named('added_node_affinity')}: {error}") from error
    for option in given.policy_option:
        if "=" not in option:
            raise OptionError(f"{named('policy_option')} is {option!r}; give it as K=V")
    gang_owners(given, named("gangs_from"))
    wildcards = {"", "0.0.0.0", "::"}
    addresses = {given.health_address, given.bind_address}
    if given.health_port == given.secure_port > 0 and (len(addresses) == 1 or addresses & wildcards):
        ports = f"{named('health_port')} and {named('secure_port')}"
        raise OptionError(f"{ports} are both {given.health_port}; give different ports")
    if given.firmament_address:
        _check_external(given, named)
    _check_usage(given, named)
    _check_tls(given, named)
    _check_reach(given, named)


def _check_external(given: Settings, named: Names) -> None:
    """Reject settings of the flow service if an external one is used. Raises OptionError."""
    flags = {name: FIELDS[name].key for name in _SERVICE_ONLY} | {"gang_reserve_after": "reserve-after"}
    for name, flag in flags.items():
        if getattr(given, name) != FIELDS[name].default:
            raise OptionError(
                f"{named(name)} belongs to the flow service: give --{flag} to `firmament serve`, not beside "
                f"{named('firmament_address')}"
            )


def _check_reach(given: Settings, named: Names) -> None:
    """Other machines are connected to with certificates, unless that is not wanted. Raises OptionError."""
    address, insecure = given.firmament_address, named("firmament_insecure")
    if given.firmament_insecure:
        if given.firmament_ca_file is not None:
            raise OptionError(f"{insecure} and {named('firmament_ca_file')} contradict each other; give one of them")
    elif address and not is_local(address) and given.firmament_ca_file is None:
        raise OptionError(
            f"{named('firmament_address')} {address} is on another machine: give {named('firmament_ca_file')}, "
            f"{named('firmament_cert_file')} and {named('firmament_key_file')}; or {insecure}, with which everybody on "
            "the way can change what is placed"
        )
    elif given.stats_address and not is_local(given.stats_address):
        raise OptionError(
            f"{named('stats_address')} {given.stats_address} is open to other machines, and has no TLS: give an "
            f"address of loopback; or {insecure}, with which everybody can report usage"
        )


def _check_tls(given: Settings, named: Names) -> None:
    """Validate the TLS files: gRPC does not report unusable ones, every call would fail as unavailable."""
    certificate, key = given.firmament_cert_file, given.firmament_key_file
    cert_name, key_name = named("firmament_cert_file"), named("firmament_key_file")
    if (given.firmament_ca_file or certificate or key) and not (given.firmament_address and given.firmament_ca_file):
        raise OptionError(
            f"{cert_name} and {key_name} need {named('firmament_ca_file')}, and that needs {named('firmament_address')}"
        )
    if given.firmament_ca_file and given.firmament_address.startswith(DIRECT):
        raise OptionError(
            f"{named('firmament_ca_file')}: there are no certificates at {given.firmament_address}, the rights of the "
            "socket's file count; leave it out, or give a service at HOST:PORT"
        )
    if (certificate is None) != (key is None):
        raise OptionError(f"{cert_name} and {key_name} go together")
    own_cert, own_key = named("tls_cert_file"), named("tls_private_key_file")
    if (given.tls_cert_file is None) != (given.tls_private_key_file is None):
        raise OptionError(f"{own_cert} and {own_key} go together")
    try:
        check_pair(own_cert, given.tls_cert_file, own_key, given.tls_private_key_file)
        check_certificates(named("firmament_ca_file"), given.firmament_ca_file)
        check_pair(cert_name, certificate, key_name, key)
        check_certificates(named("prometheus_ca"), given.prometheus_ca)
    except PemFileError as error:
        raise OptionError(str(error)) from error


def _check_usage(given: Settings, named: Names) -> None:
    url = named("prometheus_url")
    if not given.prometheus_url:
        for key in ("prometheus_token_file", "prometheus_ca", "prometheus_queries"):
            if getattr(given, key) is not None:
                raise OptionError(f"{named(key)} needs {url}")
        return
    if "@" in given.prometheus_url:  # which is not shown: it may have a password
        raise OptionError(
            f"{url} has a user or a password before the @, which are not sent; drop them, and give a bearer token by "
            f"{named('prometheus_token_file')}"
        )
    try:
        credentials.at(given.prometheus_url)
    except CredentialsError as error:
        raise OptionError(
            f"{url} must be like http://HOST:PORT or https://HOST, not {given.prometheus_url!r}"
        ) from error
    for name in given.prometheus_queries or {}:
        if name not in QUERIES:
            raise OptionError(
                f"{named('prometheus_queries')} has an unknown key {name!r}; there are: {', '.join(QUERIES)}"
            )
