"""Compares labels and annotations with the table.

Most objects have none of its keys, and finding that out must be cheap: each key contains one of a few words, which are
searched for in the undecoded bytes first.
"""

from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache

from poseidon_py.conventions.fields import NO_REMARKS, Remarks
from poseidon_py.conventions.table import CONVENTIONS
from poseidon_py.conventions.tables.own import PREFIX
from poseidon_py.conventions.verdicts import Effect, Rows, Verdict
from poseidon_py.util.decoding import MalformedError, decode_json

_OWN = PREFIX.encode()
_SPOKEN_OF = (Effect.REPORTED, Effect.REFUSED)
_LONG = 20
"""Characters of a value that are compared with neutral ones."""


WORDS = tuple(dict.fromkeys(word.encode() for each in CONVENTIONS for word in each.words))
"""Of which each key contains one that is reported or refused."""


class _Keys:
    """Rows of keys: exact ones, and families that end in `*`."""

    def __init__(self, *rows: Rows) -> None:
        everything = {key: verdict for each in rows for key, verdict in each.items()}
        self.exact = {key: verdict for key, verdict in everything.items() if not key.endswith("*")}
        self._families = {key[:-1]: verdict for key, verdict in everything.items() if key.endswith("*")}
        spoken_of = [key.encode() for key, verdict in everything.items() if verdict.effect in _SPOKEN_OF]
        self.words = tuple(word for word in WORDS if word == _OWN or any(word in key for key in spoken_of))
        """Of which each key contains one that is reported or refused, and each unknown one with our prefix."""

    def verdict(self, key: str) -> Verdict | None:
        found = self.exact.get(key)
        if found is None and self._families:
            found = next((verdict for start, verdict in self._families.items() if key.startswith(start)), None)
        return found


_POD_LABELS = _Keys(*(each.pods.labels for each in CONVENTIONS))
_POD_ANNOTATIONS = _Keys(*(each.pods.annotations for each in CONVENTIONS))
_LABELS = _Keys(*(each.objects.labels for each in CONVENTIONS), *(each.pods.labels for each in CONVENTIONS))
_ANNOTATIONS = _Keys(
    *(each.objects.annotations for each in CONVENTIONS), *(each.pods.annotations for each in CONVENTIONS)
)


def remarks_on_pod(labels: bytes, annotations: bytes) -> Remarks:
    """What is said of a pod's labels and annotations, undecoded; what cannot be decoded is reported elsewhere."""
    return _both(_on_pod_labels(labels), _on_pod_annotations(annotations))


def remarks_on_object(labels: bytes, annotations: bytes) -> Remarks:
    """What is said of another object's."""
    return _both(_of(labels, "label", _LABELS), _of(annotations, "annotation", _ANNOTATIONS))


def _both(one: Remarks, other: Remarks) -> Remarks:
    if one is NO_REMARKS or other is NO_REMARKS:
        return other if one is NO_REMARKS else one
    return Remarks(one.reported + other.reported, one.refused + other.refused)


@lru_cache(maxsize=4096)  # the pods of a template have the same bytes
def _on_pod_labels(data: bytes) -> Remarks:
    return _of(data, "label", _POD_LABELS)


@lru_cache(maxsize=4096)
def _on_pod_annotations(data: bytes) -> Remarks:
    return _of(data, "annotation", _POD_ANNOTATIONS)


def _of(data: bytes, what: str, keys: _Keys) -> Remarks:
    if not data or not any(word in data for word in keys.words):
        return NO_REMARKS
    try:
        found: Mapping[str, str] = decode_json(data, dict[str, str], what)
    except MalformedError:
        return NO_REMARKS
    reported: list[str] = []
    refused: list[str] = []
    for key, value in found.items():
        verdict = keys.verdict(key)
        if verdict is None:
            if key.startswith(PREFIX):
                reported.append(f"{what} {key}: is not known and has no effect; {_meant(key, keys)}")
        elif value[:_LONG] in verdict.neutral or _asks_nothing(verdict, found):
            continue
        elif verdict.effect in _SPOKEN_OF:
            (reported if verdict.effect is Effect.REPORTED else refused).append(f"{what} {key}: {verdict.text}")
    return Remarks(tuple(reported), tuple(refused)) if reported or refused else NO_REMARKS


def _asks_nothing(verdict: Verdict, keys: Mapping[str, str]) -> bool:
    other, value = verdict.unless
    return other != "" and keys.get(other) == value


def _meant(key: str, keys: _Keys) -> str:
    alike = get_close_matches(key, [each for each in keys.exact if each.startswith(PREFIX)], n=1)
    return f"did you mean {alike[0]}?" if alike else "remove it"
