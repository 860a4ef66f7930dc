"""What evaluates folds, that is the macros over lists and maps."""

from collections.abc import Iterable

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.frames import Evaluation, Frame
from poseidon_py.devices.cel.values import (
    ListValue,
    MapValue,
    Value,
    limited,
    no_such_overload,
    type_name,
    weight_of,
)

_APPENDING_COST = 12
"""Of a list of one element, and of adding it."""


def _source(ranged: Evaluation, frame: Frame) -> ListValue | MapValue:
    source = ranged(frame)
    if not isinstance(source, ListValue | MapValue):
        raise EvaluationError(f"got '{type_name(source)}', expected iterable type")
    return source


def _elements(source: ListValue | MapValue, two: bool) -> Iterable[tuple[Value, Value]]:
    if isinstance(source, MapValue):
        return source.items()
    return enumerate(source) if two else ((each, None) for each in source)


def accumulated(
    ranged: Evaluation,
    two: bool,
    slots: tuple[int, int, int],
    initial: Evaluation,
    condition: Evaluation,
    step: Evaluation,
    result: Evaluation,
) -> Evaluation:
    """A fold; `slots` are those of its variables and of its accumulator.

    An error is the accumulator's value until it is asked for.
    """
    first, second, accumulator = slots

    def fold(frame: Frame) -> Value:
        variables = frame.slots
        source = _source(ranged, frame)
        variables[accumulator] = initial(frame)
        for variables[first], variables[second] in _elements(source, two):
            if not condition(frame):
                break
            frame.spend(1)
            try:
                variables[accumulator] = step(frame)
            except EvaluationError as error:
                variables[accumulator] = error
        return result(frame)

    return fold


def collected(
    ranged: Evaluation, two: bool, slots: tuple[int, int, int], condition: Evaluation | None, element: Evaluation
) -> Evaluation:
    """A fold whose accumulator is a list that grows, as those of `map` and `filter`, in time linear in its result.

    The first error ends it: nothing can be added to an error.
    """
    first, second, _ = slots

    def collect(frame: Frame) -> Value:
        variables = frame.slots
        values: list[Value] = []
        weight = 0
        for variables[first], variables[second] in _elements(_source(ranged, frame), two):
            frame.spend(1)
            if condition is not None:
                decided = condition(frame)
                if type(decided) is not bool:
                    raise no_such_overload()
                if not decided:
                    continue
            frame.spend(_APPENDING_COST)
            value = element(frame)
            weight = limited(weight + weight_of(value))
            values.append(value)
        return ListValue(values)

    return collect
