"""Definitions of the kinds that declare queues, for the synthetic cluster."""

import yaml

from tests.paths import ROOT

DEFINITIONS = {
    "ClusterQueue": ("kueue.x-k8s.io", "v1beta2", "clusterqueues", False),
    "Cohort": ("kueue.x-k8s.io", "v1beta2", "cohorts", False),
    "LocalQueue": ("kueue.x-k8s.io", "v1beta2", "localqueues", True),
    "ResourceFlavor": ("kueue.x-k8s.io", "v1beta2", "resourceflavors", False),
    "WorkloadPriorityClass": ("kueue.x-k8s.io", "v1beta2", "workloadpriorityclasses", False),
    "ElasticQuota": ("scheduling.x-k8s.io", "v1alpha1", "elasticquotas", True),
}


def definition(kind, group, version, plural, namespaced):
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    one = {"name": version, "served": True, "storage": True, "schema": schema, "subresources": {"status": {}}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced" if namespaced else "Cluster",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"},
            "versions": [one],
        },
    }


def install(cluster, *kinds):
    for kind in kinds:
        cluster.create(definition(kind, *DEFINITIONS[kind]))


def install_volcano(cluster):
    cluster.create(definition("Queue", "scheduling.volcano.sh", "v1beta1", "queues", False))


def install_kai(cluster):
    cluster.create(definition("Queue", "scheduling.run.ai", "v2", "queues", False))


def install_koordinator(cluster):
    cluster.create(definition("ElasticQuota", "scheduling.sigs.k8s.io", "v1alpha1", "elasticquotas", True))


def install_own(cluster):
    """The definition that users install."""
    for each in yaml.safe_load_all((ROOT / "deploy" / "chart" / "definitions" / "queues.yaml").read_text()):
        cluster.create(each)


def declare(cluster, api_version, kind, name, spec, namespace="", **fields):
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    cluster.create({"apiVersion": api_version, "kind": kind, "metadata": metadata, "spec": spec, **fields})
