"""The whole table, and lookups in it."""

from collections.abc import Iterable
from dataclasses import replace

from poseidon_py.conventions.tables.coscheduling import COSCHEDULING, FLUENCE
from poseidon_py.conventions.tables.devices import DEVICES
from poseidon_py.conventions.tables.grove_and_godel import GODEL, GROVE
from poseidon_py.conventions.tables.kai import KAI
from poseidon_py.conventions.tables.koordinator import KOORDINATOR
from poseidon_py.conventions.tables.kubeflow import TRAINER, TRAINING
from poseidon_py.conventions.tables.kueue import KUEUE
from poseidon_py.conventions.tables.native import NATIVE
from poseidon_py.conventions.tables.own import OWN
from poseidon_py.conventions.tables.ray_and_spark import RAY, SPARK
from poseidon_py.conventions.tables.volcano import VOLCANO
from poseidon_py.conventions.tables.workloads import APPWRAPPER, JOBSET, LWS
from poseidon_py.conventions.tables.yunikorn import YUNIKORN
from poseidon_py.conventions.verdicts import ConventionTable, KindTable

CONVENTIONS: tuple[ConventionTable, ...] = (
    OWN,
    NATIVE,
    DEVICES,
    COSCHEDULING,
    FLUENCE,
    VOLCANO,
    KAI,
    KUEUE,
    YUNIKORN,
    KOORDINATOR,
    GROVE,
    GODEL,
    JOBSET,
    LWS,
    TRAINING,
    TRAINER,
    RAY,
    SPARK,
    APPWRAPPER,
)


def _merged(kinds: Iterable[KindTable]) -> dict[tuple[str, str], KindTable]:
    """By group and kind, with the fields of all versions: no field has two meanings."""
    found: dict[tuple[str, str], KindTable] = {}
    for each in kinds:
        key = each.group, each.kind
        before = found.get(key)
        found[key] = each if before is None else replace(before, fields={**before.fields, **each.fields})
    return found


_KINDS = _merged(kind for convention in CONVENTIONS for kind in convention.kinds)


def kind_table(group: str, kind: str) -> KindTable | None:
    """The fields of a kind, of all versions together; None: it is not in the table."""
    return _KINDS.get((group, kind))
