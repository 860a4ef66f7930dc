"""Why quotas keep tasks waiting."""

from dataclasses import dataclass
from enum import Enum

from firmament_py.model.arrays import I64


class Cause(Enum):
    UNKNOWN = "the queue does not exist, or takes no tasks"
    STOPPED = "the queue, or one above it, is stopped"
    OVER_QUOTA = "a quota does not suffice"


@dataclass(frozen=True, slots=True)
class Shortage:
    """Tasks with these rows (K,) of the task table wait. queue: name of the queue that is stopped, or whose quota does
    not suffice; resource, lacking: of which it has too little, and how much more is needed."""

    rows: I64
    cause: Cause
    queue: str = ""
    resource: str = ""
    lacking: int = 0
