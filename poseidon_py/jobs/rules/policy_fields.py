"""Policies as they are written: in `spec.policies`, in those of a task, and in an annotation."""

from collections.abc import Sequence

import msgspec
from msgspec import Struct

from poseidon_py.describe.lifetime import duration
from poseidon_py.jobs.rules.policies import Policy, action_of, event_of
from poseidon_py.kube.objects import InvalidField


class PolicyFields(Struct, rename="camel"):
    """A LifecyclePolicy."""

    action: str | None = None
    event: str | None = None
    events: list[str] | None = None
    exit_code: int | None = None
    timeout: str | None = None


def read_policies(found: Sequence[PolicyFields] | None, path: str) -> tuple[Policy, ...]:
    """The policies of a field at `path`. Raises InvalidField; also where two of them are for the same event or exit
    code, as Volcano's webhook does: the second one would never apply."""
    policies: list[Policy] = []
    seen: dict[object, int] = {}
    for at, each in enumerate(found or ()):
        policy = _policy(each, f"{path}[{at}]")
        names = [policy.exit_code] if policy.exit_code is not None else sorted(policy.events)
        for name in names:
            if (first := seen.setdefault(name, at)) != at:
                what = f"exit code {name}" if policy.exit_code is not None else f"event {name}"
                raise InvalidField(f"{path}[{at}]", f"is for {what}, as is {path}[{first}]; keep one of them")
        policies.append(policy)
    return tuple(policies)


def _policy(found: PolicyFields, path: str) -> Policy:
    events = [*([found.event] if found.event else []), *(found.events or ())]
    if found.exit_code is not None and events:
        raise InvalidField(path, "has both events and exitCode; give one of them")
    if found.exit_code is None and not events:
        raise InvalidField(path, "has neither events nor exitCode; give one of them")
    if found.exit_code == 0:
        raise InvalidField(
            f"{path}.exitCode", "is 0, which is success; give another number, or the event TaskCompleted"
        )
    timeout = None
    if found.timeout:
        try:
            timeout = duration(found.timeout)
        except InvalidField as error:
            raise InvalidField(
                f"{path}.timeout", f"{found.timeout!r} is not a duration above 0; give one like 90s or 1h30m"
            ) from error
    return Policy(
        frozenset(event_of(event, f"{path}.event") for event in events),
        found.exit_code,
        action_of(found.action, f"{path}.action"),
        timeout,
    )


def parse_policies(text: str, path: str) -> tuple[Policy, ...]:
    """Policies in JSON, as in `spec.policies`. Raises InvalidField."""
    try:
        found = msgspec.json.decode(text, type=list[PolicyFields])
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidField(path, f"{error}; give a JSON list as in spec.policies") from error
    return read_policies(found, path)
