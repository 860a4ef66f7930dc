"""Names of requirements, which the engine returns when a node fails them; report.messages turns them into text."""

ENFORCED = "enforced"
"""The node affinity that the administrator adds to every pod."""

FEATURES = "features"
"""Kubelet features that a pod needs."""

NODE_POOL = "node pool"
"""The pool of nodes that the pod, its PodGroup or its owner names, or that of its queue."""

VOLUME_NODE = "volume node"
VOLUME_ZONE = "volume zone"
VOLUME_NONE = "no volume"
VOLUME_SPACE = "volume space"
VOLUME_COUNT = "volume count"
CLAIM_IN_USE = "claim in use"

DEVICES = "devices"
"""The nodes that reach the devices of the pod's claims."""

CLAIM_TOKEN = "claim:"
"""Prefix of the tokens that stand for claims of which one pod at a time may hold each."""

ATTACHABLE = "attachable-volumes-csi-"
"""Prefix of the resources that count the volumes of a CSI driver attached to a node."""
