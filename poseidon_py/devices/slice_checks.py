"""What a slice must not have. An invalid one is skipped, and its pool is incomplete then."""

from collections.abc import Iterable

from poseidon_py.devices.objects import Quantity, RequestPolicy, SliceSpec, body_of
from poseidon_py.kube.objects import InvalidField
from poseidon_py.kube.quantity import QuantityError, nanos


def check_slice(spec: SliceSpec) -> None:
    """Raises InvalidField for amounts that cannot be read."""
    for at, offered in enumerate(spec.counters or ()):
        for name, counter in offered.counters.items():
            _checked(counter.value, f"spec.sharedCounters[{at}].counters[{name}].value")
    for at, device in enumerate(spec.devices or ()):
        path, body = f"spec.devices[{at}]", body_of(device)
        for name, capacity in (body.capacity or {}).items():
            _checked(capacity.value, f"{path}.capacity[{name}].value")
            for amount in _amounts_of(capacity.policy):
                _checked(amount, f"{path}.capacity[{name}].requestPolicy")
        for use in body.consumes or ():
            for name, counter in use.counters.items():
                _checked(counter.value, f"{path}.consumesCounters[{use.counter_set}][{name}].value")


def _checked(amount: Quantity, path: str) -> None:
    try:
        nanos(str(amount))
    except QuantityError as error:
        raise InvalidField(path, f"{error}; give one like 40Gi") from error


def _amounts_of(policy: RequestPolicy | None) -> Iterable[Quantity]:
    if policy is not None:
        given = policy.valid_range
        bounds = (given.min, given.max, given.step) if given is not None else ()
        yield from (each for each in (policy.default, *(policy.valid_values or ()), *bounds) if each is not None)
