"""A reason for waiting: its kind, the number of nodes that it concerns, and details."""

from dataclasses import dataclass
from enum import IntEnum


class ReasonKind(IntEnum):
    """Numbers as in the contract's Reason.Kind."""

    INSUFFICIENT_RESOURCE = 1  # detail: the resource
    TOO_MANY_TASKS = 2
    UNTOLERATED_TAINT = 3  # detail, value: key and value of the taint
    SELECTOR_MISMATCH = 4
    AFFINITY = 5
    ANTI_AFFINITY = 6
    ANTI_AFFINITY_OF_OTHERS = 7
    SPREAD = 8
    SPREAD_LABEL_MISSING = 9
    TOKEN_TAKEN = 10  # detail: the token
    GANG_INCOMPLETE = 11  # detail: the gang, value: members that must be created before it can be tried
    GANG_DOES_NOT_FIT = 12  # detail: the gang, value: "fitting/needed" members
    FURTHER_AFFINITY = 13  # detail: its name
    RESERVED = 14  # detail: the gang or single task that the capacity of these nodes is reserved for
    GANG_FULL = 15  # detail: the gang, value: "placed/maximum" members
    DEFERRED = 16  # a later round considers it: it has many inter-task terms, and so have others
    DELAYED = 17  # fits, but waits for a node that costs less
    NOT_BY_PREEMPTION = 18  # detail: the gang, value: "fitting/needed" members with all evictions and moves at best
    OVER_QUOTA = 19  # detail: the queue whose quota does not suffice, value: "resource: lacking amount"
    QUEUE_UNKNOWN = 20  # the queue of the task does not exist, or is no leaf
    QUEUE_STOPPED = 21  # detail: the queue that is stopped


@dataclass(frozen=True, slots=True)
class Reason:
    kind: ReasonKind
    nodes: int
    detail: str = ""
    value: str = ""
