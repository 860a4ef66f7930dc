"""The JSON schema of a PoseidonConfiguration, from the annotations of Settings."""

from collections.abc import Mapping
from typing import Any

from msgspec import inspect

from poseidon_py.config.document import shown
from poseidon_py.config.fields import FIELDS, Field
from poseidon_py.config.layout import API_VERSION, HEADINGS, KIND, LAYOUT, PROFILES
from poseidon_py.util.durations import GO_DURATION


def document_schema() -> dict[str, Any]:
    """A schema of draft 2020-12. It refuses what `read_document` refuses, but for what depends on several settings."""
    policy = _mapping(
        {
            "name": _of(FIELDS["policy"]),
            "options": {
                "type": "object",
                "description": FIELDS["policy_option"].text,
                "additionalProperties": {"type": ["string", "number", "boolean"]},
            },
        },
        "The cost policy; all profiles have the same.",
    )
    profile = _mapping({"schedulerName": {"type": "string", "minLength": 1}, "policy": policy}, "")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": KIND,
        **_mapping(
            {
                "apiVersion": {"const": API_VERSION},
                "kind": {"const": KIND},
                PROFILES: {
                    "type": "array",
                    "minItems": 1,
                    "description": FIELDS["scheduler_name"].text,
                    "items": {**profile, "required": ["schedulerName"]},
                },
                **{key: _section(value, HEADINGS[key]) for key, value in LAYOUT.items()},
            },
            "The configuration of `poseidon run --config`.",
        ),
        "required": ["apiVersion", "kind"],
    }


def _section(layout: Mapping[str, Any], text: str) -> dict[str, Any]:
    schema = _mapping(
        {key: _of(FIELDS[at]) if isinstance(at, str) else _section(at, key) for key, at in layout.items()}, text
    )
    schema["type"] = ["object", "null"]  # null: all of its lines are comments
    return schema


def _mapping(properties: Mapping[str, Any], text: str) -> dict[str, Any]:
    described = {"description": text} if text else {}
    return {"type": "object", **described, "additionalProperties": False, "properties": dict(properties)}


def _of(field: Field) -> dict[str, Any]:
    schema: dict[str, Any] = {"description": field.text}
    forms = [_form(field, kind) for kind in field.kinds]
    schema |= forms[0] if len(forms) == 1 else {"anyOf": forms}
    if field.default is None:
        schema = {"description": schema.pop("description"), "anyOf": [schema, {"type": "null"}]}
    default = shown(field, field.default)
    return schema if default is None else schema | {"default": default}


def _form(field: Field, kind: inspect.Type) -> dict[str, Any]:
    if field.is_switch:
        return {"type": "boolean"}
    match kind:
        case inspect.FloatType() if field.in_seconds:
            return {"type": "string", "pattern": f"^{GO_DURATION}$"}
        case inspect.IntType() | inspect.FloatType():
            bounds = {"minimum": kind.ge, "maximum": kind.le, "exclusiveMinimum": kind.gt}
            name = "integer" if isinstance(kind, inspect.IntType) else "number"
            return {"type": name, **{key: bound for key, bound in bounds.items() if bound is not None}}
        case inspect.LiteralType():
            return {"enum": list(field.words)}
        case inspect.BoolType():
            return {"type": "boolean"}
        case inspect.DictType(value_type=inspect.StrType()):
            return {"type": "object", "additionalProperties": {"type": "string"}}
        case inspect.DictType():
            return {"type": "object"}
        case inspect.VarTupleType():
            return {"type": "array", "items": {"type": "string"}}
        case _:
            return {"type": "string"}
