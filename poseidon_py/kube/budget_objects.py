"""The fields of PodDisruptionBudgets that scheduling needs. See objects.py."""

from msgspec import Struct, field

from poseidon_py.kube.object_details import LabelSelector
from poseidon_py.kube.objects import Metadata


class BudgetSpec(Struct):
    selector: LabelSelector | None = None


class BudgetStatus(Struct):
    allowed: int | None = field(default=None, name="disruptionsAllowed")


class DisruptionBudget(Struct):
    """PodDisruptionBudget."""

    metadata: Metadata = field(default_factory=Metadata)
    spec: BudgetSpec = field(default_factory=BudgetSpec)
    status: BudgetStatus = field(default_factory=BudgetStatus)
