"""All conventions, in order of precedence: if a pod uses two of them, the first is in effect."""

from poseidon_py.state.gangs.by_annotation import BatchAnnotations, Kueue, LeaderWorkerSet, LightLabels, YuniKorn
from poseidon_py.state.gangs.by_owner import Own, Percent
from poseidon_py.state.gangs.by_pod_group import Coscheduling, Godel, Kai, Native, Volcano
from poseidon_py.state.gangs.model import Convention

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
