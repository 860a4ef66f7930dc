"""The annotations of a job that Volcano's fields do not have.

poseidon.io/main-task           the task whose success raises MainTaskEvent: the job completes
poseidon.io/completion-policy   {"worker": {"minSucceeded": 2, "maxFailed": 1}}: when a task has succeeded or failed
poseidon.io/retry-policy        {"delay": 10, "maxRetryCount": 3, "tasks": {"worker": {...}}}: of the job, and of
                                each replica of a task
poseidon.io/policies            policies as in spec.policies, for events that Volcano's definition does not allow
poseidon.io/event               a custom event, on the job or on a pod of it; removed when it was handled
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import msgspec
from msgspec import Struct

from poseidon_py.jobs.rules.policies import Policy
from poseidon_py.jobs.rules.policy_fields import parse_policies
from poseidon_py.kube.objects import InvalidField

MAIN_TASK = "poseidon.io/main-task"
COMPLETION = "poseidon.io/completion-policy"
RETRY = "poseidon.io/retry-policy"
POLICIES = "poseidon.io/policies"
EVENT = "poseidon.io/event"


T = TypeVar("T")


class Completion(Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    """A task has succeeded with `min_succeeded` pods, and failed with `max_failed`; success is tested first."""

    min_succeeded: int | None = None
    max_failed: int | None = None


class Retry(Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    """Up to `max_retry_count` retries, each `delay` seconds after the failure."""

    retry: bool = True
    delay: float = 0.0
    max_retry_count: int | None = None


class _JobRetry(Struct, rename="camel", frozen=True, forbid_unknown_fields=True):
    retry: bool = True
    delay: float = 0.0
    max_retry_count: int | None = None
    tasks: dict[str, Retry] = {}


@dataclass(frozen=True)
class Extensions:
    """The annotations of a job, decoded."""

    main_task: str = ""
    completion: Mapping[str, Completion] = field(default_factory=dict)
    retry: Retry | None = None
    replica_retry: Mapping[str, Retry] = field(default_factory=dict)
    policies: tuple[Policy, ...] = ()


def read_extensions(annotations: Mapping[str, str], tasks: Sequence[str]) -> Extensions:
    """The extensions of a job with these tasks. Raises InvalidField."""
    main = annotations.get(MAIN_TASK, "")
    if main:
        _check_task(main, tasks, MAIN_TASK)
    completion = _decoded(annotations, COMPLETION, dict[str, Completion]) or {}
    for name, policy in completion.items():
        _check_task(name, tasks, COMPLETION)
        _check_least(policy.min_succeeded, 1, COMPLETION, f"{name}.minSucceeded")
        _check_least(policy.max_failed, 1, COMPLETION, f"{name}.maxFailed")
    found = _decoded(annotations, RETRY, _JobRetry)
    retry, of_replicas = None, {}
    if found is not None:
        retry, of_replicas = Retry(found.retry, found.delay, found.max_retry_count), found.tasks
        for name, each in {"": retry, **of_replicas}.items():
            if name:
                _check_task(name, tasks, RETRY)
            _check_least(each.max_retry_count, 0, RETRY, f"{name}.maxRetryCount".lstrip("."))
            _check_least(each.delay, 0, RETRY, f"{name}.delay".lstrip("."))
    text = annotations.get(POLICIES)
    policies = parse_policies(text, _path(POLICIES)) if text else ()
    return Extensions(main, completion, retry, of_replicas, policies)


def _decoded(annotations: Mapping[str, str], name: str, kind: type[T]) -> T | None:
    text = annotations.get(name)
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InvalidField(_path(name), f"{error}; see docs/jobs.md for its form") from error


def _check_task(name: str, tasks: Sequence[str], annotation: str) -> None:
    if name not in tasks:
        raise InvalidField(_path(annotation), f"there is no task {name!r}; the job has {', '.join(tasks)}")


def _check_least(value: float | None, least: int, annotation: str, part: str) -> None:
    if value is not None and value < least:
        raise InvalidField(_path(annotation), f"{part} is {value:g}; give {least} or more")


def _path(name: str) -> str:
    return f"metadata.annotations[{name}]"
