"""Names of demands that the engine returns when a node fails them; report.messages puts them into words."""

ENFORCED = "enforced"
"""The node affinity that the administrator adds to every pod's."""

FEATURES = "features"
"""Features of a kubelet that a pod needs."""

VOLUME_NODE = "volume node"
VOLUME_ZONE = "volume zone"
VOLUME_NONE = "no volume"
VOLUME_SPACE = "volume space"

ATTACHABLE = "attachable-volumes-csi-"
"""Prefix of the resources that stand for how many volumes of a driver a node can hold."""
