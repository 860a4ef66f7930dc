"""ValidatingAdmissionPolicies, from the table of conventions: chart/admission.yaml.

Labels and annotations with our prefix on pods, on what has templates of pods, on nodes and on namespaces are compared
with poseidon_py/conventions/tables/own.py when they are stored. The expressions use nothing newer than Kubernetes 1.30:

    schedulers  names of schedulers, which the chart adds
    templates   the templates of their pods in an object
    entries     labels and annotations, each with its path and with what may be in it
    found       of each entry, what is wrong
    ...Before   the same of the object before an update

Only what is wrong and was not before is refused, so that controllers go on with objects that were there first. Pods
that have a controller are checked when they are changed, but not when they are created: their controller would try for
ever, and it is its template that needs the correction.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from poseidon_py.conventions.tables.own import OF_SYNTHETIC_CLUSTER, OWN, PREFIX
from poseidon_py.conventions.verdicts import Effect, Rows

Json = dict[str, Any]

_LONGEST_VALUE = 4096
"""Characters of a value that are compared with its form: an expression has a budget. The scheduler reads all of it."""
_SHOWN = 64
"""Characters of a value that a message quotes."""


class Policy(NamedTuple):
    """`resources`: by group. `templates`: a list of {at, of}, where `o` is the object. `place`: which keys the object
    itself may have; with `templates` it is checked if one of them is of our schedulers."""

    name: str
    resources: dict[str, tuple[str, ...]]
    place: str
    templates: str = ""
    operations: tuple[str, ...] = ("CREATE", "UPDATE")


def _has(path: str) -> str:
    """Whether a field is there, and all above it."""
    steps = path.split(".")
    return " && ".join(f"has({'.'.join(steps[:at])})" for at in range(2, len(steps) + 1))


def _one(path: str) -> str:
    """A template at a path."""
    return f"({_has(path)} ? [{{'at': dyn('{path.removeprefix('o.')}.'), 'of': dyn({path})}}] : [])"


def _each(path: str, name: str, template: str) -> str:
    """Those of a list of parts with names."""
    place = f"dyn('{path.removeprefix('o.')}[' + x.{name} + '].{template}.')"
    parts = f"{path}.filter(x, {_has(f'x.{template}')})"
    return f"({_has(path)} ? {parts}.map(x, {{'at': {place}, 'of': dyn(x.{template})}}) : [])"


def _roles(path: str) -> str:
    """Those of a map of roles."""
    place = f"dyn('{path.removeprefix('o.')}[' + x + '].template.')"
    roles = f"{path}.filter(x, has({path}[x].template))"
    return f"({_has(path)} ? {roles}.map(x, {{'at': {place}, 'of': dyn({path}[x].template)}}) : [])"


_KUBEFLOW = {"pytorch": "pytorchjobs", "tf": "tfjobs", "mpi": "mpijobs", "xgb": "xgboostjobs", "paddle": "paddlejobs",
             "jax": "jaxjobs"}  # fmt: skip
_RAY = ("o.spec", "o.spec.rayClusterSpec", "o.spec.rayClusterConfig")
_TEMPLATES = (
    _one("o.spec.template"),
    _one("o.spec.jobTemplate.spec.template"),
    _each("o.spec.replicatedJobs", "name", "template.spec.template"),
    _one("o.spec.leaderWorkerTemplate.leaderTemplate"),
    _one("o.spec.leaderWorkerTemplate.workerTemplate"),
    _each("o.spec.tasks", "name", "template"),
    *(_roles(f"o.spec.{each}ReplicaSpecs") for each in _KUBEFLOW),
    *(_one(f"{each}.headGroupSpec.template") for each in _RAY),
    *(_each(f"{each}.workerGroupSpecs", "groupName", "template") for each in _RAY),
)
_SCHEDULER = (
    "has(t.of.spec) && has(t.of.spec.schedulerName) ? t.of.spec.schedulerName"
    " : has(o.spec.schedulerName) ? o.spec.schedulerName : has(o.spec.tasks) ? 'volcano' : 'default-scheduler'"
)
"""Of a template: a Job of Volcano has one for all of its tasks."""

POLICIES = (
    Policy("pods", {"": ("pods",)}, "", "[{'at': dyn(''), 'of': o}]"),
    Policy(
        "owners",
        {
            "": ("replicationcontrollers",),
            "apps": ("deployments", "replicasets", "statefulsets", "daemonsets"),
            "batch": ("jobs", "cronjobs"),
            "jobset.x-k8s.io": ("jobsets",),
            "leaderworkerset.x-k8s.io": ("leaderworkersets",),
            "batch.volcano.sh": ("jobs",),
            "kubeflow.org": tuple(_KUBEFLOW.values()),
            "ray.io": ("rayclusters", "rayjobs", "rayservices"),
        },
        "owner",
        " + ".join(_TEMPLATES),
    ),
    # a kubelet registers its node with labels of its own: a node that cannot join is worse than a label without effect
    Policy("nodes", {"": ("nodes",)}, "node", operations=("UPDATE",)),
    Policy("namespaces", {"": ("namespaces",)}, "namespace"),
)


def policies() -> list[Json]:
    """Of each policy: name, matchConstraints, matchConditions, variables, validations."""
    return [_policy(each) for each in POLICIES]


def _policy(policy: Policy) -> Json:
    rules = [
        {
            "apiGroups": [group],
            "apiVersions": ["*"],
            "operations": list(policy.operations),
            "resources": list(resources),
        }
        for group, resources in policy.resources.items()
    ]
    places = [place for place in (policy.place, "pod" if policy.templates else "") if place]
    keys = {f"{place} {what}": _keys(place, what) for place in places for what in ("annotation", "label")}
    variables = {
        "rules": _literal({where: _rules(rows) for where, rows in keys.items()}),
        "names": _literal({where: _named(rows) for where, rows in keys.items()}),
        "written": _literal({where: _written(rows) for where, rows in keys.items()}),
    }
    for o, suffix in (("object", ""), ("oldObject", "Before")):
        # dyn: of the kinds each has some of the fields, which a check of types would complain about
        variables[f"o{suffix}"] = f"dyn({o})"
        exists = f"{o} == null ? [] : "
        if policy.templates:
            variables[f"templates{suffix}"] = exists + _renamed(
                f"({policy.templates}).filter(t, ({_SCHEDULER}) in variables.schedulers)", f"variables.o{suffix}"
            )
        variables[f"entries{suffix}"] = exists + _renamed(_entries(policy), f"variables.o{suffix}", suffix)
        variables[f"found{suffix}"] = f"variables.entries{suffix}.map(e, {_WRONG})"
    return {
        "name": policy.name,
        "matchConstraints": {"resourceRules": rules},
        "matchConditions": [_NOT_CONTROLLED] if policy.name == "pods" else [],
        "variables": [{"name": name, "expression": text} for name, text in variables.items()],
        "validations": [
            {
                "expression": f"variables.found.all(e, e.all(m, {_WAS_THERE}))",
                "messageExpression": f"variables.found.map(e, e.filter(m, !{_WAS_THERE}).map(m, {_MESSAGE}).join('; '))"
                ".filter(t, t != '').join('; ')",
                "message": f"a label or annotation with the prefix {PREFIX} is not known, or its value is not valid",
                "reason": "Invalid",
            }
        ],
    }


_NOT_CONTROLLED = {
    "name": "not-made-by-a-controller",
    "expression": "request.operation == 'UPDATE' || !has(object.metadata.ownerReferences)"
    " || !object.metadata.ownerReferences.exists(r, has(r.controller) && r.controller)",
}


def _renamed(expression: str, o: str, suffix: str = "") -> str:
    """An expression about `o` and `templates`, about another object."""
    return re.sub(r"\btemplates\b", f"variables.templates{suffix}", re.sub(r"(?<![\w.'])o\b", o, expression))


def _entries(policy: Policy) -> str:
    found = []
    for what in ("annotation", "label"):
        if policy.place:
            own = _entry(f"'metadata.{what}s'", f"{policy.place} {what}", f"o.metadata.{what}s")
            found.append(f"(size(templates) == 0 ? [] : [{own}])" if policy.templates else f"[{own}]")
        if policy.templates:
            of_template = _entry(f"t.at + 'metadata.{what}s'", f"pod {what}", f"t.of.metadata.{what}s")
            found.append(f"templates.map(t, {of_template})")
    return " + ".join(found)


def _entry(at: str, what: str, keys: str) -> str:
    found = f"{_has(keys)} ? dyn({keys}) : dyn({{}})"
    return f"{{'at': dyn({at}), 'what': dyn('{what}'), 'keys': {found}}}"


_WAS_THERE = "variables.foundBefore.exists(b, m in b)"


# of an entry `e`: {at, key, what, value, give}; without `give` the key is not known
_UNKNOWN = (
    f"k.startsWith('{PREFIX}') && !(k in variables.rules[e.what])"
    " && !variables.written[e.what].exists(w, w == k || w.endsWith('*') && k.startsWith(w.replace('*', '')))"
)
_NOT_VALID = (
    f"k in e.keys && size(e.keys[k]) <= {_LONGEST_VALUE}"
    " && !variables.rules[e.what][k].all(p, p.startsWith('give ') || e.keys[k].matches(p))"
)
_QUOTED = f"(e.keys[k].matches('^[ -~]{{0,{_SHOWN}}}$') ? '\"' + e.keys[k] + '\"' : 'the value')"
_WRONG = (  # all values are dyn, since those of a map have to be of one type
    f"e.keys.filter(k, {_UNKNOWN})"
    ".map(k, {'at': e.at, 'key': dyn(k), 'what': e.what, 'value': dyn(''), 'give': dyn('')})"
    f" + variables.rules[e.what].filter(k, {_NOT_VALID}).map(k, {{'at': e.at, 'key': dyn(k), 'what': e.what,"
    f" 'value': dyn({_QUOTED}), 'give': dyn(variables.rules[e.what][k][0])}})"
)

_LONGEST_KEY = max(
    len(key) for table in (OWN.pods, OWN.objects) for rows in (table.annotations, table.labels) for key in rows
)
_CUTS = list(range(len(PREFIX), _LONGEST_KEY + 1))
# equal but for at most two neighbouring characters, in place of which there are one to three: a letter that is wrong,
# that is missing, that is too many, and two that were swapped; or but for the separators
_ALIKE = (
    "size(o) - size(m.key) < 2 && size(m.key) - size(o) < 2 && "
    f"{_CUTS}.exists(i, i < size(m.key) && o.startsWith(m.key.substring(0, i))"
    " && o.endsWith(i + 2 < size(m.key) ? m.key.substring(i + 2) : ''))"
    " || m.key.lowerAscii().replace('_', '').replace('-', '').replace('.', '') == o.replace('-', '').replace('.', '')"
)
_MEANT = f"variables.names[m.what].filter(o, {_ALIKE})"
_OTHER = "(m.what.endsWith('label') ? m.what.replace('label', 'annotation') : m.what.replace('annotation', 'label'))"
_MESSAGE = (
    "m.at + '[' + m.key + ']: ' + "
    "(m.give != '' ? m.value + ' is not valid; ' + m.give : 'is not known and has no effect; '"
    f" + (m.key in variables.rules[{_OTHER}]"
    " ? (m.what.endsWith('label') ? 'give it as an annotation' : 'give it as a label')"
    f" : {_MEANT}.size() > 0 ? 'did you mean ' + {_MEANT}.join(' or ') + '?'"
    " : 'known are ' + variables.names[m.what].join(', ')))"
)


def _keys(place: str, what: str) -> Rows:
    """The rows of the table for the labels or annotations of a place."""

    def of(table: Any) -> Rows:
        rows: Rows = getattr(table, f"{what}s")
        return rows

    pods, objects = of(OWN.pods), of(OWN.objects)
    if place == "pod":
        return pods
    if place == "node":
        return {key: verdict for key, verdict in objects.items() if key.endswith("-bandwidth")}
    if place == "namespace":
        return {key: verdict for key, verdict in objects.items() if key.endswith("/movable")}
    return {**pods, **objects}


def _named(rows: Rows) -> list[str]:
    """The keys that messages name."""
    return [key for key in _offered(rows) if rows[key] is not OF_SYNTHETIC_CLUSTER]


def _offered(rows: Rows) -> list[str]:
    """The keys that users set."""
    return sorted(key for key, verdict in rows.items() if verdict.effect is not Effect.UNNEEDED and "*" not in key)


def _rules(rows: Rows) -> dict[str, list[str]]:
    """Of each key that users set: the remedy, and the patterns of its value; nothing: it may be any."""
    return {
        key: [f"give {form.text}", *form.patterns] if (form := rows[key].form) is not None else []
        for key in _offered(rows)
    }


def _written(rows: Rows) -> list[str]:
    """Keys that the scheduler itself writes; `*` at the end stands for anything."""
    return sorted(set(rows) - set(_offered(rows)))


def _literal(value: object) -> str:
    """In CEL, whose literals are those of JSON."""
    return json.dumps(value, ensure_ascii=False)
