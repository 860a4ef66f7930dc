"""Input sets, from the annotation `poseidon.io/data`: pods that read the same data share one.

The annotation lists blocks, each with its size and the nodes that hold a complete replica, or the racks if nodes are
unknown. As JSON:

    [{"bytes": "10Gi", "nodes": ["n1", "n2"]}, {"bytes": 1048576, "racks": ["r1"]}]

or in short form, separated by spaces or semicolons:

    10Gi@n1,n2; 1048576@rack/r1

A block without a place is remote wherever the pod runs. Pure apart from the cache of descriptions.
"""

import json
import re
from typing import Any

import msgspec

from poseidon_py.describe.vocabulary import Vocabulary
from poseidon_py.kube.objects import InvalidField, Pod, annotations_of
from poseidon_py.kube.quantity import QuantityError, nanos, requested
from poseidon_py.util.ids import hash64
from protos.gen import flow_pb2

DATA_ANNOTATION = "poseidon.io/data"
MAX_BLOCKS = 4096
MAX_BYTES = 2**50

_PATH = f"metadata.annotations[{DATA_ANNOTATION}]"
_BYTES = DATA_ANNOTATION.encode()
_ESCAPED = DATA_ANNOTATION.replace("/", "\\/").encode()  # how some encoders write it
_RACK = "rack/"


class Inputs(Vocabulary[int, flow_pb2.Inputs]):
    """All input sets in use, by the hash of the annotation."""

    def __init__(self) -> None:
        super().__init__()
        self._invalid: dict[int, tuple[str, str]] = {}  # field and reason: texts are not parsed again for each event

    def __len__(self) -> int:
        return super().__len__() + len(self._invalid)

    def of(self, pod: Pod) -> int:
        """The id of the pod's input set, 0 for none. Raises InvalidField."""
        raw = bytes(pod.metadata.annotations)
        if _BYTES not in raw and _ESCAPED not in raw:
            return 0
        text = annotations_of(pod.metadata).get(DATA_ANNOTATION)
        if text is None:
            return 0
        key = hash64(text)
        if key in self._invalid:
            raise InvalidField(*self._invalid[key])
        try:
            return self.id_of(key, lambda: describe_inputs(text))
        except InvalidField as problem:
            self._invalid[key] = problem.field, problem.reason
            raise

    def keep(self, in_use: set[int]) -> None:
        super().keep(in_use)
        self._invalid.clear()


def describe_inputs(text: str) -> flow_pb2.Inputs:
    """The input set that an annotation describes; its id is 0 without blocks. Raises InvalidField with the remedy."""
    blocks = _from_json(text) if text.lstrip()[:1] in ("[", "{") else _from_short(text)
    if len(blocks) > MAX_BLOCKS:
        raise InvalidField(_PATH, f"lists {len(blocks)} blocks; join some of them, at most {MAX_BLOCKS} are allowed")
    message = flow_pb2.Inputs(blocks=blocks)
    if blocks:
        message.id = hash64(message.SerializeToString(deterministic=True))
    return message


def _from_json(text: str) -> list[flow_pb2.Block]:
    try:
        listed = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidField(_PATH, f'is not JSON ({error}); write [{{"bytes": "10Gi", "nodes": ["n1"]}}]') from error
    if not isinstance(listed, list):
        raise InvalidField(_PATH, 'is not a list; write [{"bytes": "10Gi", "nodes": ["n1"]}]')
    return [_block(item, f"{_PATH}[{at}]") for at, item in enumerate(listed)]


def _block(item: Any, path: str) -> flow_pb2.Block:
    if not isinstance(item, dict):
        raise InvalidField(path, 'is not an object; write {"bytes": "10Gi", "nodes": ["n1"]}')
    for key in item:
        if key not in ("bytes", "nodes", "racks"):
            raise InvalidField(f"{path}.{key}", "is not known; a block has bytes, nodes and racks")
    if "bytes" not in item:
        raise InvalidField(f"{path}.bytes", 'is missing; give a size such as "10Gi"')
    size = item["bytes"]
    if isinstance(size, bool) or not isinstance(size, str | int):
        raise InvalidField(f"{path}.bytes", f'is {msgspec.json.encode(size).decode()}; give a size such as "10Gi"')
    return flow_pb2.Block(
        bytes=_size(str(size), f"{path}.bytes"),
        nodes=_names(item.get("nodes"), f"{path}.nodes"),
        racks=_names(item.get("racks"), f"{path}.racks"),
    )


def _names(listed: Any, path: str) -> list[str]:
    if listed is None:
        return []
    if not isinstance(listed, list) or not all(isinstance(name, str) and name for name in listed):
        raise InvalidField(path, 'is not a list of names; write ["n1", "n2"]')
    return sorted(set(listed))


def _from_short(text: str) -> list[flow_pb2.Block]:
    blocks = []
    for at, item in enumerate(re.split(r"[\s;]+", text.strip("; \t\r\n"))):
        if not item:
            continue
        path = f"{_PATH}[{at}]"
        size, at_places, places = item.partition("@")
        names = set(places.split(",")) if at_places else set()
        if not size or not names.isdisjoint(("", _RACK)):
            raise InvalidField(path, f"{item!r} lacks a size or a name; write 10Gi@n1,n2 or 10Gi@rack/r1")
        blocks.append(
            flow_pb2.Block(
                bytes=_size(size, path),
                nodes=sorted(name for name in names if not name.startswith(_RACK)),
                racks=sorted(name.removeprefix(_RACK) for name in names if name.startswith(_RACK)),
            )
        )
    return blocks


def _size(text: str, path: str) -> int:
    try:
        size = requested("bytes", nanos(text))
    except QuantityError as error:
        raise InvalidField(path, f'{error}; give a size such as "10Gi"') from error
    if not 0 <= size <= MAX_BYTES:
        raise InvalidField(path, f"{text!r} is not within bounds; give a block size from 0 to 1Pi")
    return size
