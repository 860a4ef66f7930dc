"""docs/rbac.md, from the table of rights."""

from __future__ import annotations

from collections.abc import Iterator

from deploy.rights import ANY, Feature, Json, features, settings

_HEAD = """# Rights, by feature

<!-- Generated from deploy/chart/rights.yaml by `make deploy`. -->

The chart grants the rights of the features that are on, and no others; the kustomize base has those of the defaults.
The last column says which settings switch a feature on: paths in the [configuration](configuration.md), which is
`config` in the chart's values. There, `leaderElection.leaderElect` is `leaderElection.enabled`, `policy` is a value of
its own, and `jobs.hooksFile` is `hooks.enabled`. `rbac.extraRules` adds rules. The rights of those who ask the
scheduler are in [kubectl.md](kubectl.md#credentials-and-rights).

Where a right is missing, the log names the request, and what follows from it; the scheduler goes on without.
"""
_ACCOUNTS = {
    "scheduler": "The scheduler",
    "jobs": "The controller of Volcano's Jobs",
}
_PLACES = {
    "": "the whole cluster",
    "lease": "the namespace of the lease",
    "hooks": "the namespace of stored deliveries",
}


def rights_page() -> str:
    lines = [_HEAD]
    for account, title in _ACCOUNTS.items():
        lines += [f"## {title}", "", "| feature | where | API group | resources | verbs | with |", "| --- " * 6 + "|"]
        for feature in features():
            if feature.account == account:
                lines += _rows(feature)
        lines.append("")
    defaults = ", ".join(f"`{key}: {_text(value)}`" for key, value in settings().items() if value != "")
    lines.append(f"The chart's defaults: {defaults}.")
    return "\n".join(lines) + "\n"


def _rows(feature: Feature) -> Iterator[str]:
    first = [f"**{feature.name}**: {feature.text}", _PLACES[feature.namespace]]
    last = "<br>or ".join(_condition(each) for each in feature.when) or "always"
    for rule in feature.rules:
        groups = ", ".join(group or "core" for group in rule["apiGroups"])
        names = f" named {', '.join(rule['resourceNames'])}" if "resourceNames" in rule else ""
        cells = [*first, groups, ", ".join(rule["resources"]) + names, ", ".join(rule["verbs"]), last]
        yield f"| {' | '.join(cells)} |"
        first, last = ["", ""], ""


def _condition(alternative: Json) -> str:
    return " and ".join(
        f"`{key}` given" if values == [ANY] else f"`{key}: {', '.join(_text(value) for value in values)}`"
        for key, values in alternative.items()
    )


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
