"""What evaluates nodes, given what evaluates their operands."""

from collections.abc import Iterable

from poseidon_py.devices.cel.comparison import equal, matches
from poseidon_py.devices.cel.errors import EvaluationError, LimitError
from poseidon_py.devices.cel.frames import Evaluation, Frame
from poseidon_py.devices.cel.library.overload import Overload, size_of, tenth
from poseidon_py.devices.cel.syntax import Call, Logical, Node, Select
from poseidon_py.devices.cel.values import (
    NONE,
    DeviceValue,
    ListValue,
    MapValue,
    Optional,
    TypeValue,
    Value,
    type_name,
    weight_of,
)


def placed(node: Node, evaluation: Evaluation) -> Evaluation:
    """With the node's position in errors that have none yet."""

    def placed(frame: Frame) -> Value:
        try:
            return evaluation(frame)
        except (EvaluationError, LimitError) as error:
            if error.position is None:
                error.position = node.position
            raise

    return placed


def called(node: Call, candidates: tuple[Overload, ...], arguments: list[Evaluation]) -> Evaluation:
    """A call of the first implementation that takes the values."""

    def call(frame: Frame) -> Value:
        values = [each(frame) for each in arguments]
        try:
            for candidate in candidates:
                if candidate.accepts(values):
                    frame.spend(candidate.cost(*values))
                    return candidate.function(*values)
        except (EvaluationError, LimitError) as error:
            if error.position is None:
                error.position = node.position
            raise
        kinds = ", ".join(map(type_name, values))
        raise EvaluationError(f"no such overload: {node.function.removeprefix('@')}({kinds})", node.position)

    return call


def named(meaning: int | TypeValue) -> Evaluation:
    if isinstance(meaning, TypeValue):
        return lambda frame: meaning

    def variable(frame: Frame) -> Value:
        frame.spend(1)
        value = frame.slots[meaning]
        if isinstance(value, EvaluationError):
            raise value
        return value

    return variable


def present(values: Iterable[tuple[Value, bool]]) -> Iterable[Value]:
    """The values; of those that are flagged as optional what they hold."""
    for value, flag in values:
        if not flag:
            yield value
        elif not isinstance(value, Optional):
            raise EvaluationError(f"cannot initialize optional list element from non-optional value {type_name(value)}")
        elif value.present:
            yield value.value


def _field_of(value: Value, field: str, position: int) -> Optional:
    """The field, or nothing."""
    if isinstance(value, MapValue):
        return value.find(field)
    if isinstance(value, DeviceValue):
        return Optional(getattr(value, field))
    if isinstance(value, ListValue):
        raise EvaluationError("no such overload: unsupported index type 'string' in list", position)
    return NONE


def selected(node: Select, operand: Evaluation) -> Evaluation:
    field, test, optional = node.field, node.test, node.optional

    def selected(frame: Frame) -> Value:
        frame.spend(1)
        value = operand(frame)
        chained = isinstance(value, Optional)
        if chained and not value.present:
            return False if test else NONE
        found = _field_of(value.value if chained else value, field, node.position)
        if test:
            return found.present
        if optional or chained:
            return found
        if not found.present:
            raise EvaluationError(f"no such key: {field}", node.position)
        return found.value

    return selected


def logical(node: Logical, operands: list[Evaluation]) -> Evaluation:
    decisive = not node.conjunction

    def logical(frame: Frame) -> Value:
        failed: EvaluationError | None = None
        for operand in operands:
            try:
                value = operand(frame)
                if value is decisive:
                    return decisive
                if type(value) is not bool:
                    raise EvaluationError("no such overload", node.position)
            except EvaluationError as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return not decisive

    return logical


def conditional(node: Call, condition: Evaluation, chosen: Evaluation, other: Evaluation) -> Evaluation:
    def conditional(frame: Frame) -> Value:
        value = condition(frame)
        if type(value) is not bool:
            raise EvaluationError("no such overload", node.position)
        return chosen(frame) if value else other(frame)

    return conditional


def equality(node: Call, left: Evaluation, right: Evaluation, *, negated: bool) -> Evaluation:
    """`==` or `!=`; the cost is that of reading the smaller value at all depths.

    What cannot be compared is an error of `==`, but `!=` is true of it, as in cel-go.
    """

    def equality(frame: Frame) -> Value:
        first, second = left(frame), right(frame)
        frame.spend(tenth(min(_read(first), _read(second))))
        if negated:
            return not matches(first, second)
        try:
            return equal(first, second)
        except EvaluationError as error:
            error.position = node.position
            raise

    return equality


def _read(value: Value) -> int:
    return weight_of(value) if isinstance(value, ListValue | MapValue | Optional) else size_of(value)


def not_strictly_false(operand: Evaluation) -> Evaluation:
    def evaluation(frame: Frame) -> Value:
        frame.spend(1)
        try:
            return operand(frame) is not False
        except EvaluationError:
            return True

    return evaluation


def alternative(node: Call, target: Evaluation, other: Evaluation, *, unwrap: bool) -> Evaluation:
    """`or` and `orValue`."""

    def alternative(frame: Frame) -> Value:
        value = target(frame)
        if not isinstance(value, Optional):
            raise EvaluationError(f"no such overload: {node.function}", node.position)
        if value.present:
            return value.value if unwrap else value
        return other(frame)

    return alternative


def inserted(arguments: list[Evaluation]) -> Evaluation:
    """A map with an entry, or the entries of another map, that it does not have yet."""

    def insert(frame: Frame) -> Value:
        values = [each(frame) for each in arguments]
        frame.spend(values[0].weight)
        added = [(values[1], values[2])] if len(values) == 3 else list(values[1].items())
        for key, _ in added:
            if values[0].find(key).present:
                raise EvaluationError(f"insert failed: key {key} already exists")
        return MapValue([*values[0].items(), *added])

    return insert
