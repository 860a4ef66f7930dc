"""Owners of pods that can be suspended: their controllers then delete all pods, and create them anew once they are
resumed.

A deletion by somebody else counts as a failure of the Job (`backoffLimit`, and a growing delay before new pods); one by
its controller, because the Job is suspended, does not.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import msgspec
from msgspec import Raw, Struct, field

from poseidon_py.kube.objects import NOTHING, InvalidField, Labels, Metadata, decode
from poseidon_py.util.decoding import MalformedError, decode_json

_SPEC: tuple[str, ...] = ("suspend",)
_RUN_POLICY = ("runPolicy", "suspend")

SUSPEND_FIELDS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("batch", "jobs"): _SPEC,
    ("jobset.x-k8s.io", "jobsets"): _SPEC,
    ("trainer.kubeflow.org", "trainjobs"): _SPEC,
    ("ray.io", "rayjobs"): _SPEC,
    ("ray.io", "rayclusters"): _SPEC,
    ("sparkoperator.k8s.io", "sparkapplications"): _SPEC,
    ("workload.codeflare.dev", "appwrappers"): _SPEC,
    ("kubeflow.org", "mpijobs"): _RUN_POLICY,
    ("kubeflow.org", "pytorchjobs"): _RUN_POLICY,
    ("kubeflow.org", "tfjobs"): _RUN_POLICY,
    ("kubeflow.org", "xgboostjobs"): _RUN_POLICY,
    ("kubeflow.org", "paddlejobs"): _RUN_POLICY,
    ("kubeflow.org", "jaxjobs"): _RUN_POLICY,
}
"""Group and plural of a kind -> where its field is, below spec. As Kueue's integrations have them."""

SUSPENDED = "poseidon.io/suspended"
"""An annotation: why and since when this scheduler has an object suspended, so that it resumes it, in JSON."""
RESUME = "poseidon.io/resume"
"""An annotation: with "false" this scheduler does not resume the object."""
RAN = "poseidon.io/ran-seconds"
"""An annotation: seconds for which the pods of an object with a limit ran before it was suspended."""
LIMIT = "kueue.x-k8s.io/max-exec-time-seconds"
"""A label of Kueue's: seconds for which the pods may run."""

_MULTIKUEUE = "kueue.x-k8s.io/multikueue"
"""The value of managedBy with which an object's pods run in another cluster."""


@dataclass(frozen=True, slots=True)
class Suspension:
    """What an object that can be suspended says about it."""

    suspended: bool = False
    field: tuple[str, ...] = _SPEC
    """The path below spec."""
    refused: str = ""
    """Why it must not be suspended or resumed here; empty: it may."""
    note: str = ""
    """The annotation of this scheduler; empty: it has not suspended the object."""
    stays: bool = False
    """Whether its user does not want it to be resumed."""
    schedulers: frozenset[str] = frozenset()
    """Of a suspended object: the schedulers that its templates name; empty: it has none that is known."""
    ran: float = 0.0
    """Seconds for which its pods ran before it was suspended, where that is limited."""
    priority_class: str = ""
    """Of a suspended object: the first PriorityClass that its templates name."""

    @property
    def path(self) -> str:
        return ".".join(("spec", *self.field))

    def patch(self, value: bool) -> dict[str, Any]:
        """The spec of a merge patch that sets the field."""
        found: Any = value
        for name in reversed(self.field):
            found = {name: found}
        spec: dict[str, Any] = found
        return spec


class _RunPolicy(Struct):
    suspend: bool | None = None
    managed_by: str | None = field(default=None, name="managedBy")


class _Spec(Struct):
    """What the specs of all kinds have that can be suspended."""

    suspend: bool | None = None
    managed_by: str | None = field(default=None, name="managedBy")
    run: _RunPolicy | None = field(default=None, name="runPolicy")
    shuts_down: bool | None = field(default=None, name="shutdownAfterJobFinishes")
    cluster_selector: dict[str, str] | None = field(default=None, name="clusterSelector")


def suspension_of(group: str, plural: str, metadata: Metadata, spec: Raw) -> Suspension | None:
    """None: objects of this kind cannot be suspended. Raises InvalidField."""
    path = SUSPEND_FIELDS.get((group, plural))
    if path is None:
        return None
    data = bytes(spec)
    found: _Spec = _decoded(data, _Spec)
    run = found.run or _RunPolicy()
    suspended = bool(run.suspend if path is _RUN_POLICY else found.suspend)
    annotations = own_annotations(metadata.annotations)
    schedulers, priority_class = _templates(data) if suspended else (frozenset[str](), "")
    return Suspension(
        suspended,
        path,
        _refused(plural, found, run.managed_by if path is _RUN_POLICY else found.managed_by),
        annotations.get(SUSPENDED, ""),
        annotations.get(RESUME, "").lower() == "false",
        schedulers,
        _seconds(annotations.get(RAN, "")),
        priority_class,
    )


def _seconds(text: str) -> float:
    """0 unless it is a whole number."""
    return float(text) if text.isascii() and text.isdigit() and len(text) < 12 else 0.0


def _refused(plural: str, spec: _Spec, managed_by: str | None) -> str:
    if managed_by == _MULTIKUEUE:
        return f"its managedBy is {managed_by}: MultiKueue runs it in another cluster"
    if plural == "rayjobs" and spec.cluster_selector:
        return "it uses an existing cluster (spec.clusterSelector), whose pods a suspension does not concern"
    if plural == "rayjobs" and not spec.shuts_down:
        return "KubeRay suspends a RayJob only with spec.shutdownAfterJobFinishes: true"
    return ""


def own_annotations(annotations: Raw) -> Labels:
    """The annotations about suspension; none if the annotations are invalid."""
    if annotations is NOTHING or b"poseidon.io/" not in bytes(annotations):
        return {}
    try:
        return decode(annotations, Labels, "metadata.annotations") or {}
    except InvalidField:
        return {}


def limit_of(labels: Raw) -> str:
    """The label with the limit of the time for which the pods may run; empty: none, or the labels are invalid."""
    if labels is NOTHING or LIMIT.encode() not in bytes(labels):
        return ""
    try:
        return (decode(labels, Labels, "metadata.labels") or {}).get(LIMIT, "")
    except InvalidField:
        return ""


def _templates(spec: bytes) -> tuple[frozenset[str], str]:
    """The schedulers and the first PriorityClass in the pod templates of a spec, wherever these are."""
    found = list(_fields(msgspec.json.decode(spec)))
    names = (value for key, value in found if key == "schedulerName")
    classes = (value for key, value in found if key in ("priorityClass", "priorityClassName"))
    return frozenset(names), next(classes, "")


def _fields(value: Any) -> Iterator[tuple[str, str]]:
    """All fields of objects that hold non-empty texts, in the order of the document."""
    if isinstance(value, dict):
        for key, each in value.items():
            if isinstance(each, str):
                if each:
                    yield key, each
            else:
                yield from _fields(each)
    elif isinstance(value, list):
        for each in value:
            yield from _fields(each)


def _decoded(data: bytes, kind: type[Any]) -> Any:
    try:
        return decode_json(data if data and data != b"null" else b"{}", kind, "spec")
    except MalformedError as error:
        raise InvalidField("spec", error.reason) from error
