"""YuniKorn: its file of queues, its ConfigMap, and its annotations and labels."""

from poseidon_py.conventions.verdicts import (
    HONOURED,
    ConventionTable,
    KeyTable,
    KindTable,
    delegated,
    honoured,
    refused,
    reported,
    unneeded,
)

_QUEUE = "partitions[].queues[]"
_PROPERTIES = f"{_QUEUE}.properties"
_USERS = "users and groups are not known here, so the queue takes no pods"
_LIMITS = refused(f"{_USERS}; use resources.max, or a queue for each user")
_ACCESS = refused(f"{_USERS}; give *, and control access by namespaces", "*", " *", "* *")
APPLICATIONS = "applications are not counted here, so the queue takes no pods; use resources.max"
_APPLICATIONS = refused(APPLICATIONS, 0)
_ORDER = reported("has no effect: the pods of a queue go by priority, then by age")
_RULE_FILTER = refused("users and groups are not known here, so no queue takes pods; remove the filter")
_OF_ALL = "so no queue takes pods"
_YUNIKORN = delegated("YuniKorn's own scheduler and admission controller")
_SETTINGS = (
    "service.clusterId",
    "service.policyGroup",
    "service.schedulingInterval",
    "service.volumeBindTimeout",
    "service.eventChannelCapacity",
    "service.dispatchTimeout",
    "service.enableConfigHotRefresh",
    "service.placeholderImage",
    "service.placeholderRunAsUser",
    "service.placeholderRunAsGroup",
    "service.placeholderFsGroup",
    "service.nodeInstanceTypeNodeLabelKey",
    "kubernetes.qps",
    "kubernetes.burst",
    "admissionController.webHook.amServiceName",
    "admissionController.webHook.schedulerServiceAddress",
    "admissionController.filtering.processNamespaces",
    "admissionController.filtering.bypassNamespaces",
    "admissionController.filtering.labelNamespaces",
    "admissionController.filtering.noLabelNamespaces",
    "admissionController.filtering.generateUniqueAppId",
    "admissionController.accessControl.bypassAuth",
    "admissionController.accessControl.trustControllers",
    "admissionController.accessControl.systemUsers",
    "admissionController.accessControl.externalUsers",
    "admissionController.accessControl.externalGroups",
)

YUNIKORN = ConventionTable(
    "yunikorn",
    "YuniKorn",
    (
        KindTable(
            "",
            "queues.yaml",
            ("",),
            {
                "partitions[].name": HONOURED,
                f"{_QUEUE}.name": HONOURED,
                f"{_QUEUE}.parent": unneeded("a queue with queues below it is a parent"),
                f"{_QUEUE}.resources.guaranteed{{}}": HONOURED,
                f"{_QUEUE}.resources.max{{}}": HONOURED,
                f"{_QUEUE}.maxapplications": _APPLICATIONS,
                f"{_PROPERTIES}.application.sort.policy": _ORDER,
                f"{_PROPERTIES}.application.sort.priority": _ORDER,
                f"{_PROPERTIES}.application.unschedasks.backoff": unneeded("pods that do not fit delay no others"),
                f"{_PROPERTIES}.application.unschedasks.backoff.delay": unneeded(
                    "pods that do not fit delay no others"
                ),
                f"{_PROPERTIES}.priority.policy": HONOURED,
                f"{_PROPERTIES}.priority.offset": HONOURED,
                f"{_PROPERTIES}.preemption.policy": HONOURED,
                f"{_PROPERTIES}.preemption.delay": HONOURED,
                f"{_PROPERTIES}.quota.preemption.delay": unneeded(
                    "without preemption.quotapreemptionenabled, which is refused, it says nothing"
                ),
                f"{_QUEUE}.adminacl": unneeded("YuniKorn's administration by HTTP"),
                f"{_QUEUE}.submitacl": _ACCESS,
                f"{_QUEUE}.childtemplate.maxapplications": _APPLICATIONS,
                f"{_QUEUE}.childtemplate.properties{{}}": HONOURED,
                f"{_QUEUE}.childtemplate.resources.guaranteed{{}}": HONOURED,
                f"{_QUEUE}.childtemplate.resources.max{{}}": HONOURED,
                f"{_QUEUE}.queues[]": HONOURED,
                f"{_QUEUE}.limits[].limit": delegated("people"),
                f"{_QUEUE}.limits[].users[]": delegated("the amounts of the limit, which are refused"),
                f"{_QUEUE}.limits[].groups[]": delegated("the amounts of the limit, which are refused"),
                f"{_QUEUE}.limits[].maxresources{{}}": _LIMITS,
                f"{_QUEUE}.limits[].maxapplications": _APPLICATIONS,
                "partitions[].placementrules[].name": HONOURED,
                "partitions[].placementrules[].create": HONOURED,
                "partitions[].placementrules[].filter.type": refused(_RULE_FILTER.text, "", "allow"),
                "partitions[].placementrules[].filter.users[]": _RULE_FILTER,
                "partitions[].placementrules[].filter.groups[]": _RULE_FILTER,
                "partitions[].placementrules[].parent": HONOURED,
                "partitions[].placementrules[].value": HONOURED,
                "partitions[].limits[].limit": delegated("people"),
                "partitions[].limits[].users[]": delegated("the amounts of the limit, which are refused"),
                "partitions[].limits[].groups[]": delegated("the amounts of the limit, which are refused"),
                "partitions[].limits[].maxresources{}": refused(
                    f"users and groups are not known here, {_OF_ALL}; give the root queue resources.max"
                ),
                "partitions[].limits[].maxapplications": refused(
                    f"applications are not counted here, {_OF_ALL}; give the root queue resources.max", 0
                ),
                "partitions[].preemption.enabled": HONOURED,
                "partitions[].preemption.quotapreemptionenabled": refused(
                    f"quotas that are lowered evict no pods, {_OF_ALL}; remove it", False
                ),
                "partitions[].nodesortpolicy.type": reported("has no effect: the cost policy is that of --policy"),
                "partitions[].nodesortpolicy.resourceweights{}": reported(
                    "has no effect: the cost policy is that of --policy"
                ),
                "partitions[].usergroupresolver.type": _YUNIKORN,
                "checksum": _YUNIKORN,
            },
        ),
        KindTable(
            "",
            "ConfigMap yunikorn-configs",
            ("v1",),
            {
                **{f"data.{name}": _YUNIKORN for name in _SETTINGS},
                "data.service.disableGangScheduling": reported(
                    "has no effect: gangs of task groups are placed together; remove the annotations", "", "false"
                ),
            },
        ),
    ),
    pods=KeyTable(
        annotations={
            "yunikorn.apache.org/app-id": HONOURED,
            "yunikorn.apache.org/queue": HONOURED,
            "yunikorn.apache.org/task-group-name": HONOURED,
            "yunikorn.apache.org/task-groups": HONOURED,
            "yunikorn.apache.org/schedulingPolicyParameters": reported(
                "has no effect: no placeholders time out; a gang waits until its minimum fits, and neither fails "
                "(Hard) nor goes on without the other members (Soft)"
            ),
            "internal.yunikorn.apache.org/placeholder": _YUNIKORN,
            "yunikorn.apache.org/allow-preemption": honoured(
                "also on PriorityClasses; false: never preempted, with YuniKorn itself only where others suffice"
            ),
            "yunikorn.apache.org/user.info": _YUNIKORN,
        },
        labels={
            "yunikorn.apache.org/app-id": HONOURED,
            "applicationId": HONOURED,
            "spark-app-selector": HONOURED,
            "yunikorn.apache.org/queue": HONOURED,
            "queue": HONOURED,
        },
    ),
    objects=KeyTable(
        annotations={
            "yunikorn.apache.org/parentqueue": HONOURED,
            "yunikorn.apache.org/namespace.quota": HONOURED,
            "yunikorn.apache.org/namespace.guaranteed": HONOURED,
            "yunikorn.apache.org/namespace.maxApps": refused(APPLICATIONS, "0"),
            "yunikorn.apache.org/namespace.max.cpu": HONOURED,
            "yunikorn.apache.org/namespace.max.memory": HONOURED,
            "yunikorn.apache.org/namespace.generateAppId": _YUNIKORN,
            "yunikorn.apache.org/namespace.enableYuniKorn": _YUNIKORN,
        },
        labels={"node.kubernetes.io/instance-type": _YUNIKORN},
    ),
    words=("yunikorn",),
)
