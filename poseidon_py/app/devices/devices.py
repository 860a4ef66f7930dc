"""The components for devices: the watches of resource.k8s.io, and what gives placed pods their devices."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import Struct, field

from poseidon_py.app.devices.declarations import DeclarationReader, DeclarationReports
from poseidon_py.bind.device_claims import DeviceBinder
from poseidon_py.config.settings import Settings
from poseidon_py.devices.objects import (
    GROUP,
    VERSIONS,
    ClassSpec,
    DeviceClaimSpec,
    DeviceClaimStatus,
    DeviceClass,
    DeviceTaintRule,
    ResourceClaim,
    ResourceSlice,
    SliceSpec,
    TaintRuleSpec,
    WatchedObject,
)
from poseidon_py.kube.client import Kube, KubeError, NotFoundError, decode_answer
from poseidon_py.kube.informers.informer import Informer
from poseidon_py.kube.informers.informers import SAY_AFTER, Informers
from poseidon_py.kube.informers.resource import Resource, path_of
from poseidon_py.kube.objects import InvalidField
from poseidon_py.state.devices.chooser import DeviceChooser
from poseidon_py.state.devices.claim_cache import ClaimKey
from poseidon_py.state.object_handler import ObjectHandler, by_name, by_namespace
from poseidon_py.state.store import Store

CLAIMS = Resource(GROUP, "resourceclaims", VERSIONS)
SLICES = Resource(GROUP, "resourceslices", VERSIONS, namespaced=False)
CLASSES = Resource(GROUP, "deviceclasses", VERSIONS, namespaced=False)
TAINT_RULES = Resource(GROUP, "devicetaintrules", ("v1", "v1beta2", "v1alpha3"), namespaced=False)

TEMPLATES = Resource(GROUP, "resourceclaimtemplates", VERSIONS)

_OFF = "spec.resourceClaims: are not served, because --devices is off"
_WITHOUT = "pods with device claims wait"
_NOT_SERVED = "spec.resourceClaims: the API server serves no resource.k8s.io in v1, v1beta2 or v1beta1"


class _TemplateSpec(Struct):
    spec: DeviceClaimSpec = field(default_factory=DeviceClaimSpec)


class _Template(Struct):
    spec: _TemplateSpec = field(default_factory=_TemplateSpec)


class Devices:
    """See the module. `known` before the first round."""

    def __init__(
        self,
        kube: Kube,
        informers: Informers,
        store: Store,
        settings: Settings,
        declarations: DeclarationReports,
        leads: Callable[[], bool],
    ) -> None:
        self.declarations = declarations
        self._kube = kube
        self._gate = gate = store.devices
        self._known = asyncio.Event()
        self._informers: dict[Resource, Informer] = {}
        self.chooser = DeviceChooser(gate, store.nodes.get)
        self.binder = DeviceBinder(
            kube, gate, self.chooser, lambda: self._informers[CLAIMS].path, settings.volume_timeout, leads=leads
        )
        if settings.devices == "off":
            gate.set_readable(_OFF)
            self._known.set()
            return
        kinds: tuple[tuple[Resource, type[Any], Any, Any, Any, Any], ...] = (
            (SLICES, ResourceSlice, (SliceSpec, None), by_name, gate.put_slice, gate.drop_slice),
            (CLASSES, DeviceClass, (ClassSpec, None), by_name, gate.put_class, gate.drop_class),
            (TAINT_RULES, DeviceTaintRule, (TaintRuleSpec, None), by_name, gate.put_rule, gate.drop_rule),
            (
                CLAIMS,
                ResourceClaim,
                (DeviceClaimSpec, DeviceClaimStatus),
                by_namespace,
                gate.put_claim,
                gate.drop_claim,
            ),
        )
        for resource, kind, parts, key, put, drop in kinds:
            reader = DeclarationReader[Any](
                kind, parts, key, put, drop, self.declarations, partial(self._version, resource)
            )
            handler = ObjectHandler[Any](resource.label, key, reader.put, reader.drop, store.metrics, resource.plural)
            without = _WITHOUT if resource != TAINT_RULES else "no rule taints devices"
            informer = Informer(resource, handler, WatchedObject, without, settled=self._settled, patience=SAY_AFTER)
            informer.awaited = False
            self._informers[resource] = informer
            informers.add(informer)

    def _version(self, resource: Resource) -> str:
        """The API version in which a kind is read."""
        root, _, _ = self._informers[resource].path.rpartition("/")
        return root.removeprefix("/apis/")

    def _settled(self) -> None:
        needed = [informer for resource, informer in self._informers.items() if resource != TAINT_RULES]
        ready = all(informer.ready or informer.unreadable for informer in self._informers.values())
        if not ready:
            return
        unreadable = next((informer.unreadable for informer in needed if informer.unreadable), "")
        if not (unreadable or all(informer.path for informer in needed)):
            unreadable = _NOT_SERVED
        self._gate.set_readable(unreadable)
        self._known.set()

    async def template(self, key: ClaimKey) -> DeviceClaimSpec | None:
        """What a ResourceClaimTemplate asks for; None: there is none. Raises InvalidField if it cannot be read."""
        claims = self._informers.get(CLAIMS)
        if claims is None or not claims.path:
            return None
        path = path_of(f"{claims.path.rpartition('/')[0]}/{TEMPLATES.plural}", *key)
        try:
            answer = await self._kube.call("GET", path)
        except NotFoundError:
            return None
        except KubeError as error:
            raise InvalidField("spec.resourceClaims", f"template {key[1]!r} cannot be read: {error}") from error
        return decode_answer(answer, _Template, f"the template {key[1]}").spec.spec

    async def known(self) -> None:
        """Waits until it is known which devices there are, or why not."""
        await self._known.wait()

    async def stop(self) -> None:
        await self.binder.stop()
