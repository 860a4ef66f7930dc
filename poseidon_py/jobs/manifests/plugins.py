"""The plugins `env` and `svc` of a job: what they add to its pods, and the objects that they need.

    env   VC_TASK_INDEX and VK_TASK_INDEX
    svc   host names POD.JOB by a headless Service; VC_<TASK>_HOSTS and VC_<TASK>_NUM, and files of hosts in
          /etc/volcano, both from a ConfigMap; a NetworkPolicy that admits only the pods of the job

Arguments of svc, as Go flags: --publish-not-ready-addresses, --disable-network-policy, --inject-hosts-env=false.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poseidon_py.jobs import names
from poseidon_py.jobs.manifests.owner import Json, Owner
from poseidon_py.jobs.rules.spec import JobSpec, Task
from poseidon_py.kube.objects import InvalidField

_MOUNT_PATH = "/etc/volcano"
_FALSE = ("false", "f", "0")


@dataclass(frozen=True)
class SvcArguments:
    """The arguments of svc."""

    publish_not_ready_addresses: bool = False
    disable_network_policy: bool = False
    inject_hosts_env: bool = True


def svc_arguments(arguments: Sequence[str]) -> SvcArguments:
    """Raises InvalidField."""
    found: dict[str, bool] = {}
    for text in arguments:
        name, _, value = text.lstrip("-").partition("=")
        key = name.replace("-", "_")
        if key not in SvcArguments.__dataclass_fields__:
            raise InvalidField(
                "spec.plugins[svc]",
                f"{text!r} is no argument; give --publish-not-ready-addresses, --disable-network-policy or "
                "--inject-hosts-env=false",
            )
        found[key] = value.lower() not in _FALSE
    return SvcArguments(**found)


def config_map_name(owner: Owner) -> str:
    return f"{owner.name}-svc"


def resources(spec: JobSpec) -> dict[str, str]:
    """The plugins as `controlledResources` has them."""
    return {f"plugin-{name}": name for name in spec.plugins}


def change_pod(owner: Owner, spec: JobSpec, body: Json, index: int) -> None:
    """Adds what the plugins add to a pod."""
    pod_spec = body["spec"]
    present = [*(pod_spec.get("containers") or ()), *(pod_spec.get("initContainers") or ())]
    if "env" in spec.plugins:
        for container in present:
            for name in ("VK_TASK_INDEX", "VC_TASK_INDEX"):
                container.setdefault("env", []).append({"name": name, "value": str(index)})
    if "svc" not in spec.plugins:
        return
    pod_spec["hostname"] = pod_spec.get("hostname") or body["metadata"]["name"]
    pod_spec["subdomain"] = pod_spec.get("subdomain") or owner.name
    name = config_map_name(owner)
    pod_spec.setdefault("volumes", []).append({"name": name, "configMap": {"name": name}})
    variables = []
    if svc_arguments(spec.plugins["svc"]).inject_hosts_env:
        keys = [key for task in spec.tasks for key in (_hosts_key(task), _number_key(task))]
        variables = [{"name": key, "valueFrom": {"configMapKeyRef": {"name": name, "key": key}}} for key in keys]
    for container in present:
        container.setdefault("volumeMounts", []).append({"name": name, "mountPath": _MOUNT_PATH})
        if variables:
            container.setdefault("env", []).extend(variables)


def objects(owner: Owner, spec: JobSpec) -> Iterator[tuple[str, Json]]:
    """The collection and the manifest of each object that the plugins need."""
    if "svc" not in spec.plugins:
        return
    arguments = svc_arguments(spec.plugins["svc"])
    mine = {names.JOB_NAME: owner.name, names.JOB_NAMESPACE: owner.namespace}
    metadata = owner.metadata(owner.name)
    yield (
        "/api/v1/namespaces/{}/configmaps",
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": owner.metadata(config_map_name(owner)),
            "data": hosts(owner, spec),
        },
    )
    service: Json = {"clusterIP": "None", "selector": mine}
    if arguments.publish_not_ready_addresses:
        service["publishNotReadyAddresses"] = True
    yield (
        "/api/v1/namespaces/{}/services",
        {"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": service},
    )
    if not arguments.disable_network_policy:
        selector = {"matchLabels": mine}
        policy = {
            "podSelector": selector,
            "ingress": [{"from": [{"podSelector": selector}]}],
            "policyTypes": ["Ingress"],
        }
        yield (
            "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies",
            {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": metadata, "spec": policy},
        )


def hosts(owner: Owner, spec: JobSpec) -> dict[str, str]:
    """The data of the ConfigMap: per task the hosts, as a file and as a list, and their number."""
    found = {}
    for task in spec.tasks:
        mine = _hosts(owner, task)
        found[f"{task.name.replace('-', '_')}.host"] = "\n".join(mine)
        found[_hosts_key(task)] = ",".join(mine)
        found[_number_key(task)] = str(len(mine))
    return found


def _hosts(owner: Owner, task: Task) -> list[str]:
    pod_spec = task.template["spec"]
    domain = pod_spec.get("subdomain") or owner.name
    if pod_spec.get("hostname"):  # all pods have the same
        return [f"{pod_spec['hostname']}.{domain}"] if task.replicas else []
    return [f"{names.pod_name(owner.name, task.name, index)}.{domain}" for index in range(task.replicas)]


def _hosts_key(task: Task) -> str:
    return f"VC_{task.name.replace('-', '_').upper()}_HOSTS"


def _number_key(task: Task) -> str:
    return f"VC_{task.name.replace('-', '_').upper()}_NUM"
