"""Kubeflow's jobs: of the training operator (v1, MPIJob v2beta1) and of Trainer (TrainJob)."""

from poseidon_py.conventions.verdicts import ConventionTable, KeyTable, KindTable, delegated, honoured

_CONTROLLER = delegated("its own controller")
_POD_GROUP = delegated("its own controller, which writes it into a PodGroup where gang scheduling is configured")
_GANG = honoured("the size of a gang: annotation poseidon.io/gang, --gangs-from, or queues of Kueue")

_COMMON = {
    **dict.fromkeys(
        [
            "spec.runPolicy.activeDeadlineSeconds",
            "spec.runPolicy.backoffLimit",
            "spec.runPolicy.cleanPodPolicy",
            "spec.runPolicy.managedBy",
            "spec.runPolicy.ttlSecondsAfterFinished",
        ],
        _CONTROLLER,
    ),
    "spec.runPolicy.suspend": _GANG,
    "spec.runPolicy.schedulingPolicy.minAvailable": _GANG,
    **dict.fromkeys(
        [
            "spec.runPolicy.schedulingPolicy.minResources{}",
            "spec.runPolicy.schedulingPolicy.priorityClass",
            "spec.runPolicy.schedulingPolicy.queue",
            "spec.runPolicy.schedulingPolicy.scheduleTimeoutSeconds",
        ],
        _POD_GROUP,
    ),
}


def _kind(name: str, replicas: str, *others: str, version: str = "v1") -> KindTable:
    """`replicas`: the field with the replicas by role."""
    return KindTable(
        "kubeflow.org",
        name,
        (version,),
        {
            **_COMMON,
            f"spec.{replicas}{{}}.replicas": _GANG,
            f"spec.{replicas}{{}}.restartPolicy": _CONTROLLER,
            f"spec.{replicas}{{}}.template": _CONTROLLER,
            **{f"spec.{other}": _CONTROLLER for other in others},
        },
    )


TRAINING = ConventionTable(
    "kubeflow-training",
    "Kubeflow training operator",
    (
        _kind("JAXJob", "jaxReplicaSpecs"),
        _kind("MPIJob", "mpiReplicaSpecs", "slotsPerWorker"),
        _kind("PaddleJob", "paddleReplicaSpecs", "elasticPolicy.maxReplicas", "elasticPolicy.minReplicas"),
        _kind(
            "PyTorchJob",
            "pytorchReplicaSpecs",
            "elasticPolicy.maxReplicas",
            "elasticPolicy.minReplicas",
            "elasticPolicy.nProcPerNode",
        ),
        _kind("TFJob", "tfReplicaSpecs"),
        _kind("XGBoostJob", "xgbReplicaSpecs"),
        _kind(
            "MPIJob",
            "mpiReplicaSpecs",
            "launcherCreationPolicy",
            "runLauncherAsWorker",
            "slotsPerWorker",
            version="v2beta1",
        ),
    ),
)

_TRAIN_JOB = [
    "spec.activeDeadlineSeconds",
    "spec.managedBy",
    "spec.runtimePatches[].manager",
    "spec.runtimePatches[].time",
    "spec.runtimePatches[].trainingRuntimeSpec.template.metadata",
    "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].name",
    "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.metadata",
    "spec.runtimePatches[].trainingRuntimeSpec.template.spec.replicatedJobs[].template.spec.template",
    "spec.runtimeRef.apiGroup",
    "spec.runtimeRef.kind",
    "spec.runtimeRef.name",
    "spec.suspend",
    "spec.trainer.numNodes",
    "spec.trainer.numProcPerNode",
    "spec.trainer.resourcesPerNode.claims[].name",
    "spec.trainer.resourcesPerNode.claims[].request",
    "spec.trainer.resourcesPerNode.limits{}",
    "spec.trainer.resourcesPerNode.requests{}",
]
_RUNTIME = [
    "spec.mlPolicy.flux.numProcPerNode",
    "spec.mlPolicy.mpi.numProcPerNode",
    "spec.mlPolicy.mpi.runLauncherAsNode",
    "spec.mlPolicy.numNodes",
    "spec.podGroupPolicy.coscheduling.scheduleTimeoutSeconds",
    "spec.podGroupPolicy.volcano.networkTopology.highestTierAllowed",
    "spec.podGroupPolicy.volcano.networkTopology.mode",
    "spec.template.metadata",
    "spec.template.spec.replicatedJobs[].dependsOn[].name",
    "spec.template.spec.replicatedJobs[].dependsOn[].status",
    "spec.template.spec.replicatedJobs[].groupName",
    "spec.template.spec.replicatedJobs[].name",
    "spec.template.spec.replicatedJobs[].replicas",
    "spec.template.spec.replicatedJobs[].template.metadata",
    "spec.template.spec.replicatedJobs[].template.spec.completionMode",
    "spec.template.spec.replicatedJobs[].template.spec.completions",
    "spec.template.spec.replicatedJobs[].template.spec.parallelism",
    "spec.template.spec.replicatedJobs[].template.spec.suspend",
    "spec.template.spec.replicatedJobs[].template.spec.template",
    "spec.template.spec.suspend",
]

TRAINER = ConventionTable(
    "kubeflow-trainer",
    "Kubeflow Trainer",
    (
        KindTable("trainer.kubeflow.org", "TrainJob", ("v1alpha1",), dict.fromkeys(_TRAIN_JOB, _CONTROLLER)),
        *(
            KindTable("trainer.kubeflow.org", kind, ("v1alpha1",), dict.fromkeys(_RUNTIME, _CONTROLLER))
            for kind in ("TrainingRuntime", "ClusterTrainingRuntime")
        ),
    ),
    pods=KeyTable(labels={"trainer.kubeflow.org/trainjob-ancestor-step": _CONTROLLER}),
    words=("trainer.kubeflow.org",),
)
