"""The kind of object that a queue is, as users know it."""

_TYPES = {
    "clusterqueue": "ClusterQueue",
    "cohort": "Cohort",
    "localqueue": "LocalQueue",
    "elasticquota": "ElasticQuota",
    "koordinator": "ElasticQuota",
}


def type_of(key: str) -> str:
    """Of the key of a queue."""
    return _TYPES.get(key.partition("/")[0], "Queue")
