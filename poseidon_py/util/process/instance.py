"""The name of this process among those that do the same work."""

import os
import socket
from collections.abc import Mapping


def instance_name(environment: Mapping[str, str] = os.environ) -> str:
    """That of the pod, which the chart gives in POD_NAME; else the host name, which is the node's in a pod with its
    network."""
    return environment.get("POD_NAME") or socket.gethostname()
