"""What is said of a pod's labels, annotations and fields that conventions define. Pure."""

from poseidon_py.conventions.fields import Remarks, remarks_on
from poseidon_py.conventions.keys import remarks_on_pod
from poseidon_py.conventions.table import kind_table
from poseidon_py.kube.objects import NOTHING, InvalidField, Pod, decode

_POD = kind_table("", "Pod")
_PATH = "spec.workloadRef"


def pod_remarks(pod: Pod) -> Remarks:
    """Called for every pod. A field that cannot be decoded is refused."""
    found = remarks_on_pod(bytes(pod.metadata.labels), bytes(pod.metadata.annotations))
    if pod.spec.workload_ref is NOTHING or _POD is None:
        return found
    try:
        reference = decode(pod.spec.workload_ref, dict[str, object], _PATH)
    except InvalidField as problem:
        return Remarks(found.reported, (str(problem), *found.refused))
    fields = remarks_on(_POD, {"spec": {"workloadRef": reference}})
    return Remarks(found.reported + fields.reported, found.refused + fields.refused)
