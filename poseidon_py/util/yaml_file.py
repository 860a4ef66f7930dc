"""Reads a YAML file as YAML 1.2 has it: `on` is a key like others, and a key that is given twice is an error."""

import re
from pathlib import Path
from typing import Any

import yaml


class YamlError(ValueError):
    """The file cannot be read; the message names it and the reason."""


class _Loader(yaml.SafeLoader):
    """Without the booleans on, off, yes and no of YAML 1.1, and without dates."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key, _ in node.value:
            if key.value in seen:
                raise yaml.YAMLError(f"the key {key.value!r} is given twice, line {key.start_mark.line + 1}; drop one")
            seen.add(key.value)
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith((":bool", ":timestamp"))]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:bool", re.compile("^(?:true|True|TRUE|false|False|FALSE)$"), list("tTfF")
)


def read_yaml(path: Path) -> Any:
    """The content of a file. Raises YamlError."""
    try:
        return yaml.load(path.read_text(encoding="utf-8"), _Loader)
    except OSError as error:
        raise YamlError(f"cannot read {path}: {error.strerror}; correct the path") from error
    except UnicodeDecodeError as error:
        raise YamlError(f"{path} is not text in UTF-8; save it as YAML in UTF-8") from error
    except (yaml.YAMLError, ValueError, RecursionError, TypeError) as error:
        raise YamlError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
