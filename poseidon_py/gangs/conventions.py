"""All conventions, in order of precedence: where two of them speak of a pod, the first counts."""

from poseidon_py.gangs.by_marks import BatchAnnotations, Kueue, LeaderWorkerSet, LightLabels, YuniKorn
from poseidon_py.gangs.by_object import Coscheduling, Godel, Kai, Native, Volcano
from poseidon_py.gangs.by_owner import Own, Percent
from poseidon_py.gangs.model import Convention

OWN = Own()

CONVENTIONS: tuple[Convention, ...] = (
    OWN,
    Native(),
    Coscheduling(),
    LightLabels(),
    Kai(),
    Volcano(),
    BatchAnnotations(),
    Kueue(),
    YuniKorn(),
    Godel(),
    LeaderWorkerSet(),
    Percent(),
)
