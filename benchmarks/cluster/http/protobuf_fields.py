"""The numbers of the fields in protobuf bodies, for the kinds that kubectl and schedulers in Go send that way.

The numbers are those of the published generated.proto files, which no package ships compiled for a current protobuf.
The position of a name is the field's number: the first has number 1; long messages have five names per line. Types are
those of the schema; this table adds only what JSON types do not express.

    name        a field
    name:bytes  base64 in JSON
    name:micro  a time with microseconds
    -           no such number, or an optional field that is not read: a body that has it is refused
    ~name       ignored, because the server sets it
    /part       a separate message on the wire, whose fields are inlined in JSON

A number beyond the last name is a field of a newer client. It is refused only if it is not empty, because Go also
writes empty plain fields.
"""

from __future__ import annotations

_OBJECT = "metadata spec ~status"
_SELECTOR_REQUIREMENT = "key operator values"
_KEY_OF = "/name key optional"
_BOTH_WAYS = "requiredDuringSchedulingIgnoredDuringExecution preferredDuringSchedulingIgnoredDuringExecution"

MESSAGES = {
    # of all kinds
    "V1ObjectMeta": (
        "name generateName namespace selfLink uid "
        "resourceVersion generation creationTimestamp deletionTimestamp deletionGracePeriodSeconds "
        "labels annotations ownerReferences finalizers ~clusterName "
        "- ~managedFields"
    ),
    "V1OwnerReference": "kind - name uid apiVersion controller blockOwnerDeletion",
    "V1LabelSelector": "matchLabels matchExpressions",
    "V1LabelSelectorRequirement": _SELECTOR_REQUIREMENT,
    "V1ObjectReference": "kind namespace name uid apiVersion resourceVersion fieldPath",
    "V1LocalObjectReference": "name",
    "V1DeleteOptions": "gracePeriodSeconds preconditions orphanDependents propagationPolicy dryRun -",
    "V1Preconditions": "uid resourceVersion",
    # access reviews
    "V1SelfSubjectAccessReview": _OBJECT,
    "V1SelfSubjectAccessReviewSpec": "resourceAttributes nonResourceAttributes",
    "V1ResourceAttributes": "namespace verb group version resource subresource name - -",
    "V1NonResourceAttributes": "path verb",
    "V1SelfSubjectRulesReview": _OBJECT,
    "V1SelfSubjectRulesReviewSpec": "namespace",
    "V1SelfSubjectReview": "metadata ~status",
    # what a scheduler sends
    "V1Binding": "metadata target",
    "V1Eviction": "metadata deleteOptions",
    "V1Lease": "metadata spec",
    "V1LeaseSpec": (
        "holderIdentity leaseDurationSeconds acquireTime:micro renewTime:micro leaseTransitions strategy "
        "preferredHolder"
    ),
    "CoreV1Event": (
        "metadata involvedObject reason message source "
        "firstTimestamp lastTimestamp count type eventTime:micro "
        "series action related reportingComponent reportingInstance"
    ),
    "V1EventSource": "component host",
    "CoreV1EventSeries": "count lastObservedTime:micro",
    "EventsV1Event": (
        "metadata eventTime:micro series reportingController reportingInstance "
        "action reason regarding related note "
        "type deprecatedSource deprecatedFirstTimestamp deprecatedLastTimestamp deprecatedCount"
    ),
    "EventsV1EventSeries": "count lastObservedTime:micro",
    # small kinds of `kubectl create`
    "V1Namespace": _OBJECT,
    "V1NamespaceSpec": "finalizers",
    "V1ConfigMap": "metadata data binaryData:bytes immutable",
    "V1Secret": "metadata data:bytes type stringData immutable",
    "V1ServiceAccount": "metadata secrets imagePullSecrets automountServiceAccountToken",
    "V1PriorityClass": "metadata value globalDefault description preemptionPolicy",
    "V1ResourceQuota": _OBJECT,
    "V1ResourceQuotaSpec": "hard scopes -",
    "V1PodDisruptionBudget": _OBJECT,
    "V1PodDisruptionBudgetSpec": "minAvailable selector maxUnavailable unhealthyPodEvictionPolicy",
    "V1Service": _OBJECT,
    "V1ServiceSpec": (
        "ports selector clusterIP type externalIPs "
        "- sessionAffinity loadBalancerIP loadBalancerSourceRanges externalName "
        "externalTrafficPolicy healthCheckNodePort publishNotReadyAddresses - - "
        "- ipFamilyPolicy clusterIPs ipFamilies allocateLoadBalancerNodePorts "
        "loadBalancerClass internalTrafficPolicy trafficDistribution"
    ),
    "V1ServicePort": "name protocol port targetPort nodePort appProtocol",
    # workloads
    "V1Scale": _OBJECT,
    "V1ScaleSpec": "replicas",
    "V1Deployment": _OBJECT,
    "V1DeploymentSpec": (
        "replicas selector template strategy minReadySeconds revisionHistoryLimit paused - progressDeadlineSeconds"
    ),
    "V1DeploymentStrategy": "type rollingUpdate",
    "V1RollingUpdateDeployment": "maxUnavailable maxSurge",
    "V1Job": _OBJECT,
    "V1JobSpec": (
        "parallelism completions activeDeadlineSeconds selector manualSelector "
        "template backoffLimit ttlSecondsAfterFinished completionMode suspend "
        "podFailurePolicy backoffLimitPerIndex maxFailedIndexes podReplacementPolicy managedBy "
        "-"
    ),
    "V1PodFailurePolicy": "rules",
    "V1PodFailurePolicyRule": "action onExitCodes onPodConditions",
    "V1PodFailurePolicyOnExitCodesRequirement": "containerName operator values",
    "V1PodFailurePolicyOnPodConditionsPattern": "type status",
    "V1PodTemplateSpec": "metadata spec",
    # pods
    "V1Pod": _OBJECT,
    "V1PodSpec": (
        "volumes containers restartPolicy terminationGracePeriodSeconds activeDeadlineSeconds "
        "dnsPolicy nodeSelector serviceAccountName serviceAccount nodeName "
        "hostNetwork hostPID hostIPC securityContext imagePullSecrets "
        "hostname subdomain affinity schedulerName initContainers "
        "automountServiceAccountToken tolerations hostAliases priorityClassName priority "
        "dnsConfig shareProcessNamespace readinessGates runtimeClassName enableServiceLinks "
        "preemptionPolicy overhead topologySpreadConstraints - setHostnameAsFQDN "
        "os hostUsers schedulingGates - resources "
        "hostnameOverride - schedulingGroup"
    ),
    "V1PodSchedulingGate": "name",
    "V1PodSchedulingGroup": "podGroupName",
    "V1PodReadinessGate": "conditionType",
    "V1PodOS": "name",
    "V1HostAlias": "ip hostnames",
    "V1PodDNSConfig": "nameservers searches options",
    "V1PodDNSConfigOption": "name value",
    "V1PodSecurityContext": (
        "- runAsUser runAsNonRoot supplementalGroups fsGroup "
        "runAsGroup - - fsGroupChangePolicy seccompProfile "
        "- supplementalGroupsPolicy seLinuxChangePolicy"
    ),
    "V1SeccompProfile": "type localhostProfile",
    # containers
    "V1Container": (
        "name image command args workingDir "
        "ports env resources volumeMounts livenessProbe "
        "readinessProbe lifecycle terminationMessagePath imagePullPolicy securityContext "
        "stdin stdinOnce tty envFrom terminationMessagePolicy "
        "volumeDevices startupProbe - restartPolicy -"
    ),
    "V1ContainerPort": "name hostPort containerPort protocol hostIP",
    "V1ResourceRequirements": "limits requests -",
    "V1SecurityContext": (
        "capabilities privileged - runAsUser runAsNonRoot "
        "readOnlyRootFilesystem allowPrivilegeEscalation runAsGroup procMount - "
        "seccompProfile -"
    ),
    "V1Capabilities": "add drop",
    "V1EnvVar": "name value valueFrom",
    "V1EnvVarSource": "fieldRef resourceFieldRef configMapKeyRef secretKeyRef -",
    "V1ObjectFieldSelector": "apiVersion fieldPath",
    "V1ResourceFieldSelector": "containerName resource divisor",
    "V1ConfigMapKeySelector": _KEY_OF,
    "V1ConfigMapKeySelector/name": "name",
    "V1SecretKeySelector": _KEY_OF,
    "V1SecretKeySelector/name": "name",
    "V1EnvFromSource": "prefix configMapRef secretRef",
    "V1ConfigMapEnvSource": "/name optional",
    "V1ConfigMapEnvSource/name": "name",
    "V1SecretEnvSource": "/name optional",
    "V1SecretEnvSource/name": "name",
    "V1Probe": (
        "/action initialDelaySeconds timeoutSeconds periodSeconds successThreshold failureThreshold "
        "terminationGracePeriodSeconds"
    ),
    "V1Probe/action": "exec httpGet tcpSocket grpc",
    "V1Lifecycle": "postStart preStop stopSignal",
    "V1LifecycleHandler": "exec httpGet tcpSocket sleep",
    "V1ExecAction": "command",
    "V1HTTPGetAction": "path port host scheme httpHeaders",
    "V1HTTPHeader": "name value",
    "V1TCPSocketAction": "port host",
    "V1GRPCAction": "port service",
    "V1SleepAction": "seconds",
    # volumes
    "V1VolumeMount": "name readOnly mountPath subPath mountPropagation subPathExpr recursiveReadOnly",
    "V1VolumeDevice": "name devicePath",
    "V1Volume": "name /source",
    "V1Volume/source": (
        "hostPath emptyDir - - - "
        "secret - - - persistentVolumeClaim "
        "- - - - - "
        "downwardAPI - - configMap - "
        "- - - - - "
        "projected - csi ephemeral -"
    ),
    "V1HostPathVolumeSource": "path type",
    "V1EmptyDirVolumeSource": "medium sizeLimit",
    "V1SecretVolumeSource": "secretName items defaultMode optional",
    "V1PersistentVolumeClaimVolumeSource": "claimName readOnly",
    "V1ConfigMapVolumeSource": "/name items defaultMode optional",
    "V1ConfigMapVolumeSource/name": "name",
    "V1KeyToPath": "key path mode",
    "V1DownwardAPIVolumeSource": "items defaultMode",
    "V1DownwardAPIVolumeFile": "path fieldRef resourceFieldRef mode",
    "V1ProjectedVolumeSource": "sources defaultMode",
    "V1VolumeProjection": "secret downwardAPI configMap serviceAccountToken - -",
    "V1SecretProjection": "/name items - optional",
    "V1SecretProjection/name": "name",
    "V1DownwardAPIProjection": "items",
    "V1ConfigMapProjection": "/name items - optional",
    "V1ConfigMapProjection/name": "name",
    "V1ServiceAccountTokenProjection": "audience expirationSeconds path",
    "V1CSIVolumeSource": "driver readOnly fsType volumeAttributes nodePublishSecretRef",
    "V1EphemeralVolumeSource": "volumeClaimTemplate",
    "V1PersistentVolumeClaimTemplate": "metadata spec",
    "V1PersistentVolumeClaimSpec": (
        "accessModes resources volumeName selector storageClassName volumeMode - - volumeAttributesClassName"
    ),
    "V1VolumeResourceRequirements": "limits requests",
    # where pods may run
    "V1Toleration": "key operator value effect tolerationSeconds",
    "V1TopologySpreadConstraint": (
        "maxSkew topologyKey whenUnsatisfiable labelSelector minDomains nodeAffinityPolicy nodeTaintsPolicy "
        "matchLabelKeys"
    ),
    "V1Affinity": "nodeAffinity podAffinity podAntiAffinity",
    "V1NodeAffinity": _BOTH_WAYS,
    "V1NodeSelector": "nodeSelectorTerms",
    "V1NodeSelectorTerm": "matchExpressions matchFields",
    "V1NodeSelectorRequirement": _SELECTOR_REQUIREMENT,
    "V1PreferredSchedulingTerm": "weight preference",
    "V1PodAffinity": _BOTH_WAYS,
    "V1PodAntiAffinity": _BOTH_WAYS,
    "V1WeightedPodAffinityTerm": "weight podAffinityTerm",
    "V1PodAffinityTerm": "labelSelector namespaces topologyKey namespaceSelector matchLabelKeys mismatchLabelKeys",
}
