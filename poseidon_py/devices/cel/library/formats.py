"""Kubernetes' library `format`: names, labels and other forms of text, with what is wrong with a text."""

import base64
import binascii
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date

from poseidon_py.devices.cel.errors import EvaluationError
from poseidon_py.devices.cel.library.overload import Overload, overload, tenth
from poseidon_py.devices.cel.library.times import timestamp_from
from poseidon_py.devices.cel.library.urls import is_url
from poseidon_py.devices.cel.values import NONE, ListValue, Optional, register

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LABEL_1035 = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?")
_SUBDOMAIN = re.compile(rf"{_LABEL.pattern}(\.{_LABEL.pattern})*")
_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_UUID = re.compile(r"(?i)[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}")

Validation = Callable[[str], list[str]]


@dataclass(frozen=True, slots=True)
class Format:
    """A form of text by name; `pattern` is the length of the pattern that upstream counts as its cost."""

    name: str
    validation: Validation
    pattern: int


register(Format, "kubernetes.NamedFormat")


def _form(pattern: re.Pattern[str], longest: int, prefix: bool = False) -> Validation:
    def validation(text: str) -> list[str]:
        # a prefix may end in a dash; as in apimachinery, the character before it is not looked at then
        checked = f"{text[:-2]}a" if prefix and text.endswith("-") and len(text) > 1 else text
        errors = [f"must be no more than {longest} characters"] if len(text.encode()) > longest else []
        return errors if len(text) < 1000 and pattern.fullmatch(checked) else [*errors, f"must match {pattern.pattern}"]

    return validation


def _qualified_name(text: str) -> list[str]:
    prefix, slash, name = text.rpartition("/")
    errors = []
    if slash:
        errors = ["prefix part must be non-empty"] if not prefix else _form(_SUBDOMAIN, 253)(prefix)
        if "/" in prefix:
            return ["a qualified name must consist of a name and an optional DNS subdomain prefix and '/'"]
    return errors + (["name part must be non-empty"] if not name else _form(_NAME, 63)(name))


def _label_value(text: str) -> list[str]:
    return _form(_NAME, 63)(text) if text else []


def _valid(check: Callable[[str], bool], message: str) -> Validation:
    return lambda text: [] if check(text) else [message]


def _base64(text: str) -> bool:
    try:
        return bool(text) and bool(base64.b64decode(text.encode("ascii"), validate=True))
    except (UnicodeEncodeError, binascii.Error):
        return False


def _date(text: str) -> bool:
    try:
        return len(text) == 10 and bool(date.fromisoformat(text))
    except ValueError:
        return False


def _datetime(text: str) -> bool:
    try:
        return bool(timestamp_from(text.replace("t", "T").replace("z", "Z")))
    except EvaluationError:
        return False


_FORMATS = {
    "dns1123Label": Format("DNS1123Label", _form(_LABEL, 63), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", _form(_SUBDOMAIN, 253), 60),
    "dns1035Label": Format("DNS1035Label", _form(_LABEL_1035, 63), 30),
    "qualifiedName": Format("QualifiedName", _qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", _form(_LABEL, 63, prefix=True), 30),
    "dns1123SubdomainPrefix": Format("DNS1123SubdomainPrefix", _form(_SUBDOMAIN, 253, prefix=True), 60),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", _form(_LABEL_1035, 63, prefix=True), 30),
    "labelValue": Format("LabelValue", _label_value, 40),
    "uri": Format("URI", _valid(is_url, "invalid URI for request"), 1103),
    "uuid": Format("uuid", _valid(lambda text: bool(_UUID.fullmatch(text)), "does not match the UUID format"), 88),
    "byte": Format("byte", _valid(_base64, "invalid base64"), 84),
    "date": Format("date", _valid(_date, "invalid date"), 120),
    "datetime": Format("datetime", _valid(_datetime, "invalid datetime"), 120),
}


def _validate(form: Format, text: str) -> Optional:
    errors = form.validation(text)
    return Optional(ListValue(errors)) if errors else NONE


def _cost(form: Format, text: str) -> int:
    return tenth(1 + len(text)) * -(-form.pattern // 4)


def _named(name: str, form: Format) -> Overload:
    return overload(f"format.{name}() -> format", lambda: form)


OVERLOADS = [
    *(_named(name, form) for name, form in _FORMATS.items()),
    overload(
        "format.named(string) -> optional(format)", lambda name: Optional(_FORMATS[name]) if name in _FORMATS else NONE
    ),
    overload("format::validate(string) -> optional(list(string))", _validate, _cost),
]
