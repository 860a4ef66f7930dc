"""The schema of the chart's values: all keys are known; those of `config` are the ones of a PoseidonConfiguration."""

from __future__ import annotations

from typing import Any

from poseidon_py.config.document_schema import document_schema

Json = dict[str, Any]

ELSEWHERE = (
    "apiVersion", "kind", "profiles", "serving", "clientConnection.kubeconfig", "clientConnection.context",
    "leaderElection.leaderElect", "leaderElection.resourceName", "leaderElection.resourceNamespace", "jobs.hooksFile",
)  # fmt: skip
"""Keys of the configuration that other values of the chart stand for, or that make no sense in a pod."""

TEXT: Json = {"type": "string"}
SWITCH: Json = {"type": "boolean"}
COUNT: Json = {"type": "integer", "minimum": 1}
PORT: Json = {"type": "integer", "minimum": 1, "maximum": 65535}
ANYTHING: Json = {"type": "object"}
"""What Kubernetes defines, and its API server checks."""
LIST: Json = {"type": "array"}
TEXTS: Json = {"type": "array", "items": TEXT}
LABELS: Json = {"type": "object", "additionalProperties": TEXT}
DNS: Json = {"type": "string", "pattern": "^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$", "maxLength": 63}


def values_schema() -> Json:
    """JSON schema of values.yaml."""
    image = _object(
        registry=TEXT,
        repository={"type": "string", "minLength": 1},
        tag=TEXT,
        digest={"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"},
        pullPolicy={"enum": ["Always", "IfNotPresent", "Never"]},
    )
    name: Json = {"type": "string", "minLength": 1}
    scheduler_name = {"oneOf": [name, {"type": "array", "items": name, "minItems": 1, "uniqueItems": True}]}
    hooks = {"enabled": SWITCH, "config": ANYTHING, "keysSecret": DNS}
    monitored = {"enabled": SWITCH, "namespace": DNS, "labels": LABELS}
    schema = _object(
        nameOverride=DNS,
        fullnameOverride=DNS,
        commonLabels=LABELS,
        image=image,
        imagePullSecrets={"type": "array", "items": _object(name=TEXT)},
        replicaCount=COUNT,
        schedulerName=scheduler_name,
        policy=_object(name=name, options=ANYTHING),
        config=config_schema(),
        leaderElection=_object(enabled=SWITCH, leaseName=DNS, leaseNamespace={**DNS, "minLength": 1}),
        bindAddress=TEXT,
        health=_object(port=PORT),
        metrics=_object(
            port=PORT, tlsSecret=DNS, readers={"type": "array", "items": _object(name=DNS, namespace=DNS)}
        ),
        service=_object(enabled=SWITCH, annotations=LABELS),
        resources=ANYTHING,
        nodeSelector=LABELS,
        tolerations=LIST,
        affinity=ANYTHING,
        topologySpreadConstraints=LIST,
        priorityClassName=DNS,
        podAnnotations=LABELS,
        podLabels=LABELS,
        deploymentAnnotations=LABELS,
        revisionHistoryLimit={"type": "integer", "minimum": 0},
        updateStrategy=ANYTHING,
        terminationGracePeriodSeconds={"type": "integer", "minimum": 0},
        hostNetwork=SWITCH,
        dnsPolicy={"enum": ["", "ClusterFirst", "ClusterFirstWithHostNet", "Default", "None"]},
        podSecurityContext=ANYTHING,
        securityContext=ANYTHING,
        livenessProbe=ANYTHING,
        readinessProbe=ANYTHING,
        startupProbe=ANYTHING,
        extraArgs=TEXTS,
        extraEnv=LIST,
        extraVolumes=LIST,
        extraVolumeMounts=LIST,
        podDisruptionBudget=_object(enabled=SWITCH, maxUnavailable={"type": ["integer", "string"]}),
        serviceAccount=_object(create=SWITCH, name=DNS, annotations=LABELS),
        access=_object(kubectl=LIST, viewers=LIST),
        dashboard=_object(enabled=SWITCH, users=LIST),
        rbac=_object(create=SWITCH, extraRules=LIST),
        crds=_object(install=SWITCH, keep=SWITCH),
        admission=_object(
            enabled=SWITCH, action={"enum": ["deny", "warn"]}, failurePolicy={"enum": ["Ignore", "Fail"]}
        ),
        networkPolicy=_object(enabled=SWITCH, egress=LIST, **{"from": LIST}),
        serviceMonitor=_object(
            **monitored, interval=TEXT, scrapeTimeout=TEXT, relabelings=LIST, metricRelabelings=LIST
        ),
        prometheusRule=_object(**monitored, runbookUrl=TEXT, disabled=TEXTS),
        grafanaDashboards=_object(**monitored, annotations=LABELS),
        hooks=_object(**hooks, namespace={**DNS, "minLength": 1}, createNamespace=SWITCH),
        jobsController=_object(
            enabled=SWITCH,
            replicaCount=COUNT,
            installCrds=SWITCH,
            namespace=DNS,
            workers={"type": "integer", "minimum": 1, "maximum": 64},
            leaseName={**DNS, "minLength": 1},
            healthPort=PORT,
            metricsPort=PORT,
            logLevel=config_schema()["properties"]["logging"]["properties"]["level"],
            resources=ANYTHING,
            hooks=_object(**hooks),
        ),
        tests=_object(enabled=SWITCH, annotations=LABELS),
        **{"global": ANYTHING},  # of a parent chart
    )  # fmt: skip
    return {"$schema": "http://json-schema.org/draft-07/schema#", "title": "Values of the chart poseidon", **schema}


def config_schema() -> Json:
    """That of a PoseidonConfiguration, without what other values stand for."""
    schema = document_schema()
    for path in ELSEWHERE:
        *above, key = path.split(".")
        within = schema
        for each in above:
            within = within["properties"][each]
        del within["properties"][key]
    return {key: schema[key] for key in ("type", "additionalProperties", "properties")}


def _object(**properties: Json) -> Json:
    return {"type": "object", "additionalProperties": False, "properties": properties}
