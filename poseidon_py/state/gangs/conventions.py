"""All conventions, in order of precedence: if a pod uses two of them, the first is in effect."""

from poseidon_py.state.gangs.by_annotation import (
    BatchAnnotations,
    Fluence,
    Koordinator,
    Kueue,
    LeaderWorkerSet,
    LightLabels,
    YuniKorn,
)
from poseidon_py.state.gangs.by_owner import Own, Percent, RefusedOwner, VolcanoOwner
from poseidon_py.state.gangs.by_pod_group import Coscheduling, Godel, Grove, Kai, Native, Sigs, Volcano
from poseidon_py.state.gangs.model import Convention

OWN = Own()
_REFUSED, _VOLCANO_OWNER = RefusedOwner(), VolcanoOwner()

OF_OWNERS: tuple[Convention, ...] = (_REFUSED, OWN, _VOLCANO_OWNER)
"""Those that owners of pods declare."""

CONVENTIONS: tuple[Convention, ...] = (
    _REFUSED,
    OWN,
    Native(),
    Coscheduling(),
    Sigs(),
    LightLabels(),
    Koordinator(),
    Fluence(),
    Kai(),
    Volcano(),
    _VOLCANO_OWNER,
    BatchAnnotations(),
    Kueue(),
    YuniKorn(),
    Grove(),
    Godel(),
    LeaderWorkerSet(),
    Percent(),
)
