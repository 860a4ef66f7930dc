"""All conventions, in order of precedence: if a pod uses two of them, the first is in effect."""

from poseidon_py.conventions import group_keys as m
from poseidon_py.state.gangs.by_annotation import (
    BatchAnnotations,
    Fluence,
    Koordinator,
    Kueue,
    LeaderWorkerSet,
    LightLabels,
    YuniKorn,
)
from poseidon_py.state.gangs.by_owner import Own, OwnerMinimum, Percent, RayCluster, RefusedOwner
from poseidon_py.state.gangs.by_pod_group import Coscheduling, Godel, Grove, Kai, Native, Sigs, Volcano
from poseidon_py.state.gangs.model import Convention

OWN = Own()
_REFUSED, _RAY = RefusedOwner(), RayCluster()
_VOLCANO = OwnerMinimum("Volcano, on the owner", "volcano-owner", m.VOLCANO_OWNER_MINIMUM, m.GROUP_NAME)
_KAI = OwnerMinimum("KAI, on the owner", "kai-owner", m.KAI_OWNER_MINIMUM, m.KAI_NAME)

OF_OWNERS: tuple[Convention, ...] = (_REFUSED, OWN, _VOLCANO, _KAI, _RAY)
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
    _VOLCANO,
    _KAI,
    BatchAnnotations(),
    Kueue(),
    YuniKorn(),
    Grove(),
    Godel(),
    LeaderWorkerSet(),
    _RAY,
    Percent(),
)
