"""docs/configuration.md, generated from the settings: python -m poseidon_py.config.reference > docs/configuration.md"""

from collections.abc import Iterator, Mapping
from typing import Any

from poseidon_py.config.document import shown
from poseidon_py.config.fields import FIELDS, Field
from poseidon_py.config.layout import HEADINGS, LAYOUT, OF_PROFILES, PLACES

_HEAD = """# Configuration of `poseidon run`

The tables of this page are generated: `python -m poseidon_py.config.reference > docs/configuration.md`.

```yaml
apiVersion: poseidon.io/v1
kind: PoseidonConfiguration
profiles:
- schedulerName: poseidon
  policy: {name: load-spreading, options: {by: requested}}   # `poseidon policies` lists them
- schedulerName: batch                                       # has the same policy
leaderElection: {leaseDuration: 15s, resourceNamespace: scheduling}
events: {rate: 200}
```

`--config FILE` names the file; flags take precedence over it. Decoding is strict: an unknown key, a duration without
a unit, a key that is given twice are refused, with the path of each problem and what may have been meant. Durations
are Go's (`15s`, `1h30m`, `250ms`). All profiles of a process have one policy, since one network has the costs of all
pods; a second one is refused.

| command | |
| --- | --- |
| `poseidon config check FILE...` | prints all that is wrong, also with files they name; exit code 2 if anything is |
| `poseidon config show --config FILE [FLAGS]` | what `poseidon run` would use, defaults included; renews older files |
| `poseidon config default` | a file with all settings, their defaults and meanings |
| `poseidon config schema` | the JSON schema, for editors and validators |

A file without `apiVersion` has keys that are named like the flags, with dashes or underscores, and durations in
seconds: `lease-duration: 15`. It is still read; `poseidon config show FLAGS > config.yaml` makes a file of flags, too.
Flags take durations in both forms. A KubeSchedulerConfiguration is not read.

Flags of kube-scheduler with the same meaning are known by its names, too: `--leader-elect=false`,
`--leader-elect-lease-duration`, `--leader-elect-renew-deadline`, `--leader-elect-retry-period`,
`--leader-elect-resource-name`, `--leader-elect-resource-namespace`, `--kube-api-qps`, `--kube-api-burst`,
`--logging-format`, and `-v N` (4 and more is `--log-level debug`). Words may have any case, names underscores, and
switches `true` and `false`: `--preemption=false`.
"""


def page() -> str:
    lines = [_HEAD, "## Profiles\n", *_table([(f"profiles[].{place}", name) for place, name in _OF_A_PROFILE])]
    for section, layout in LAYOUT.items():
        lines += [f"## {HEADINGS[section]}: `{section}`\n", *_table([*_rows(layout)])]
    return "\n".join(lines)


_OF_A_PROFILE = list(zip(("schedulerName", "policy.name", "policy.options"), OF_PROFILES, strict=True))


def _rows(layout: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for at in layout.values():
        if isinstance(at, str):
            yield ".".join(PLACES[at][1:]), at
        else:
            yield from _rows(at)


def _table(rows: list[tuple[str, str]]) -> Iterator[str]:
    yield "| key | flag | default | |\n| --- | --- | --- | --- |"
    for place, name in rows:
        field = FIELDS[name]
        flag = f"`--{field.key}`" if field.is_flag else ""
        text = f"{field.text} Valid: {field.expected_in_document}.".replace("|", "\\|")
        yield f"| `{place}` | {flag} | {_default(field)} | {text} |"
    yield ""


def _default(field: Field) -> str:
    value = shown(field, field.default)
    if field.default is None:
        unset = field.shown_default
        return str(shown(field, float(unset))) if field.in_seconds and unset.isdigit() else unset
    if isinstance(value, bool):
        return str(value).lower()
    return ", ".join(map(str, value)) if isinstance(value, list) else "" if value is None else str(value)


if __name__ == "__main__":
    print(page(), end="")
