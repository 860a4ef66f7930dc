"""All conventions, in order of precedence: if a pod uses two of them, the first is in effect."""

from poseidon_py.state.gangs.by_annotation import (
    BatchAnnotations,
    Fluence,
    Kueue,
    LeaderWorkerSet,
    LightLabels,
    YuniKorn,
)
from poseidon_py.state.gangs.by_owner import Own, Percent, VolcanoOwner
from poseidon_py.state.gangs.by_pod_group import Coscheduling, Godel, Kai, Native, Sigs, Volcano
from poseidon_py.state.gangs.model import Convention

OWN = Own()
_VOLCANO_OWNER = VolcanoOwner()

OF_OWNERS: tuple[Convention, ...] = (OWN, _VOLCANO_OWNER)
"""Those that owners of pods declare."""

CONVENTIONS: tuple[Convention, ...] = (
    OWN,
    Native(),
    Coscheduling(),
    Sigs(),
    LightLabels(),
    Fluence(),
    Kai(),
    Volcano(),
    _VOLCANO_OWNER,
    BatchAnnotations(),
    Kueue(),
    YuniKorn(),
    Godel(),
    LeaderWorkerSet(),
    Percent(),
)
