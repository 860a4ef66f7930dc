"""Resource vectors of the original contract -> amounts.

Units of that contract (see firmament.proto) are millicores and thousandths of a byte; the latter become bytes, where
requests are rounded up and capacities down.
"""

import math

from firmament_py.model.resources import LIMIT, LINKS
from firmament_py.service.calls.invalid_field import InvalidField
from protos.gen import firmament_pb2 as pb


def amounts(vector: pb.ResourceVector, *, round_up: bool) -> dict[str, int]:
    """Cpu (millicores), memory and ephemeral storage (bytes) of a vector, by resource.

    Raises InvalidField if the cpu is not a finite number of 0 or more.
    """
    cpu = vector.cpu_cores
    if not math.isfinite(cpu) or cpu < 0:
        raise InvalidField("cpu_cores", f"is {cpu}; give millicores, 0 or more")
    whole = math.ceil if round_up else math.floor
    thousandths = {"memory": vector.ram_cap, "ephemeral-storage": vector.ephemeral_cap}
    return {
        "cpu": min(whole(cpu), LIMIT),
        **{name: -(-amount // 1000) if round_up else amount // 1000 for name, amount in thousandths.items()},
    }


def links(vector: pb.ResourceVector) -> dict[str, int]:
    """Bandwidth that a task requests or a node has, by link; 0 means unset and is left out."""
    stated = zip(LINKS, (vector.net_rx_bw, vector.net_tx_bw), strict=True)
    return {link: min(amount, LIMIT) for link, amount in stated if amount}
