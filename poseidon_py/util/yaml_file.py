"""Reads a YAML file as YAML 1.2 has it: `on` is a key like others, `010` is ten, `1:30` is a text, `1e3` is a number;
and a key that is given twice is an error."""

import re
from pathlib import Path
from typing import Any

import yaml


class YamlError(ValueError):
    """The file cannot be read; the message names it and the reason."""


class _Loader(yaml.SafeLoader):
    """With the booleans and numbers of YAML 1.2's core schema, and without dates."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.YAMLError(f"the key {key.value!r} is given twice, line {key.start_mark.line + 1}; drop one")
            seen.add(key.value)
        return super().construct_mapping(node, deep)

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """A leading zero has no meaning; 0o and 0x are octal and hexadecimal."""
        text = node.value
        return int(text, {"0o": 8, "0x": 16}.get(text[:2], 10))


class _Dumper(yaml.SafeDumper):
    """Quotes texts that are something else in YAML 1.1 or 1.2."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":timestamp", ":int", ":float"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    ("bool", "true|True|TRUE|false|False|FALSE", "tTfF"),
    ("int", "[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", "-+0123456789"),
    (
        "float",
        r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)",
        "-+.0123456789",
    ),
):
    for _kind in (_Loader, _Dumper):
        _kind.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)


def yaml_text(content: Any, width: int = 80) -> str:
    """A mapping as YAML that `read_yaml` reads back."""
    return str(yaml.dump(content, Dumper=_Dumper, sort_keys=False, width=width))


def parse_yaml(text: str) -> Any:
    """The content of a text. Raises yaml.YAMLError, ValueError, RecursionError or TypeError."""
    return yaml.load(text, _Loader)


def read_yaml(path: Path) -> Any:
    """The content of a file. Raises YamlError."""
    try:
        return parse_yaml(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise YamlError(f"cannot read {path}: {error.strerror}; correct the path") from error
    except UnicodeDecodeError as error:
        raise YamlError(f"{path} is not text in UTF-8; save it as YAML in UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        raise YamlError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
