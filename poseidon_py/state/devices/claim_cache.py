"""The claims of the cluster, who uses them, and the devices that were chosen for them and are not written yet."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from poseidon_py.devices.allocator import Grant
from poseidon_py.devices.objects import EXTENDED_CLAIM, MAX_USERS, Allocation, ResourceClaim
from poseidon_py.devices.results import node_selector
from poseidon_py.kube.objects import RequiredTerms, annotations_with

ClaimKey = tuple[str, str]
"""Namespace and name."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Devices for a claim that is not allocated yet."""

    claim: str
    """UID."""
    node: str
    grants: tuple[Grant, ...]

    @property
    def nodes(self) -> RequiredTerms | None:
        """The nodes that reach them; None: all."""
        return node_selector(self.grants, self.node)


@dataclass(slots=True)
class ClaimCache:
    """Claims by namespace and name."""

    claims: dict[ClaimKey, ResourceClaim] = field(default_factory=dict)
    users: dict[ClaimKey, dict[str, None]] = field(default_factory=dict)
    """UIDs of the pods that name a claim."""
    choices: dict[str, Choice] = field(default_factory=dict)
    """By UID of the claim."""

    extended: dict[str, ClaimKey] = field(default_factory=dict)
    """UID of a pod -> the claim that was made for its extended resources."""

    def put(self, key: ClaimKey, claim: ResourceClaim) -> None:
        self.drop(key)
        self.claims[key] = claim
        if is_extended(claim):
            self.extended[controller_of(claim)] = key

    def drop(self, key: ClaimKey) -> ResourceClaim | None:
        """Returns the claim; None: it is not known."""
        claim = self.claims.pop(key, None)
        if claim is not None and is_extended(claim):
            self.extended.pop(controller_of(claim), None)
        return claim

    def name(self, uid: str, keys: Mapping[ClaimKey, None]) -> None:
        """A pod names these claims."""
        for key in keys:
            self.users.setdefault(key, {})[uid] = None

    def forget(self, uid: str, keys: Mapping[ClaimKey, None]) -> None:
        for key in keys:
            users = self.users.get(key, {})
            users.pop(uid, None)
            if not users:
                self.users.pop(key, None)

    def allocation(self, claim: ResourceClaim) -> Allocation | Choice | None:
        """Where its devices are; None: it has none."""
        return claim.status.allocation or self.choices.get(claim.metadata.uid)


def nodes_of(allocation: Allocation | Choice) -> RequiredTerms | None:
    """The nodes on which the devices can be used; None: all."""
    return allocation.nodes if isinstance(allocation, Choice) else allocation.node_selector


def is_reserved_for(claim: ResourceClaim, uid: str) -> bool:
    return any(user.uid == uid for user in claim.status.users or ())


def version_of(claim: ResourceClaim) -> tuple[str, str]:
    return claim.metadata.uid, claim.metadata.resource_version


def is_known(claim: ResourceClaim, known: ResourceClaim) -> bool:
    """Whether a claim is no newer than the version that is known of it. Versions of the API server are numbers that
    grow; others are compared for being equal alone."""
    (uid, version), (known_uid, latest) = version_of(claim), version_of(known)
    if uid != known_uid or not version:
        return False
    return version == latest or (version.isdecimal() and latest.isdecimal() and int(version) < int(latest))


def is_full(claim: ResourceClaim, uid: str) -> bool:
    """Whether it has all users that it can have, and this is not one of them."""
    return len(claim.status.users or ()) >= MAX_USERS and not is_reserved_for(claim, uid)


def is_extended(claim: ResourceClaim) -> bool:
    """Whether a scheduler has made it for a pod's extended resources."""
    return annotations_with(claim.metadata, EXTENDED_CLAIM.encode()).get(EXTENDED_CLAIM) == "true"


def controller_of(claim: ResourceClaim) -> str:
    """UID of the controlling owner; empty: there is none."""
    return next((owner.uid for owner in claim.metadata.owners or () if owner.controller), "")
