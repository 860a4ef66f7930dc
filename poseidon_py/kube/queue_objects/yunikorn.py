"""YuniKorn's queues: the file `queues.yaml`, which a ConfigMap holds, and annotations of namespaces.

Of the file the partition `default` is read, or else the first one. Queue names are compared in lower case.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import yaml

from poseidon_py.conventions.fields import remarks_on
from poseidon_py.conventions.table import kind_table
from poseidon_py.conventions.tables.yunikorn import APPLICATIONS
from poseidon_py.kube.queue_objects.fields import Fields, Problems, QueueObject, decoded
from poseidon_py.util.durations import LONGEST

FILE = "queues.yaml"
ROOT = "root"
QUOTA = "yunikorn.apache.org/namespace.quota"
GUARANTEED = "yunikorn.apache.org/namespace.guaranteed"
MAX_CPU = "yunikorn.apache.org/namespace.max.cpu"
MAX_MEMORY = "yunikorn.apache.org/namespace.max.memory"
MAX_APPLICATIONS = "yunikorn.apache.org/namespace.maxApps"
PARENT = "yunikorn.apache.org/parentqueue"
_CPU = "vcore"
_DELAY = 30.0
_MAX_QUEUES = 10_000
_MAX_DEPTH = 32
_TABLE, _SETTINGS = kind_table("", "queues.yaml"), kind_table("", "ConfigMap yunikorn-configs")


@dataclass(frozen=True, slots=True)
class Terms:
    """The properties of a queue. `delay`: seconds."""

    delay: float = _DELAY
    fenced: bool = False
    """Whether its tasks preempt none of other queues."""
    protected: bool = False
    """Whether its tasks are not preempted."""
    offset: int = 0
    """Added to the priorities of its pods as other queues see them."""
    hides_priority: bool = False
    """Whether others see the offset alone."""


NO_TERMS = Terms()


@dataclass(frozen=True, slots=True)
class Template:
    """What queues that are created below a queue have."""

    guaranteed: dict[str, int] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)
    terms: Terms = NO_TERMS


NO_TEMPLATE = Template()


@dataclass(frozen=True, slots=True)
class FileQueue:
    """`path`: like root.team.queue."""

    path: str
    guaranteed: dict[str, int] = field(default_factory=dict)
    largest: dict[str, int] = field(default_factory=dict)
    terms: Terms = NO_TERMS
    template: Template = NO_TEMPLATE
    closed_by: str = ""
    """The problem that closes it; empty: none does."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A way to find the queue of a pod. `name`: provided, namespace or fixed."""

    name: str
    value: str
    create: bool
    parent: "Rule | None"


@dataclass(frozen=True, slots=True)
class QueuesFile:
    queues: tuple[FileQueue, ...]
    rules: tuple[Rule, ...]
    problems: tuple[str, ...]
    preempts: bool = True
    """Whether pods preempt at all."""
    unreadable: str = ""
    """Why it cannot be read, so that its queues are not known; empty: it can."""


@dataclass(frozen=True, slots=True)
class NamespaceQuota:
    guaranteed: dict[str, int]
    largest: dict[str, int]
    parent: str
    problems: tuple[str, ...]
    closed_by: str
    """The problem that closes the queue; empty: none does."""


def queues_file(item: QueueObject) -> QueuesFile:
    """The file in a ConfigMap."""
    problems = Problems()
    data = Fields(decoded(item.data, "data", problems), "data", problems)
    assert _SETTINGS is not None
    settings = {name: value for name, value in data.content.items() if name != FILE}
    problems.extend(remarks_on(_SETTINGS, {"data": settings}).reported)
    text = data.text(FILE)
    if not text:
        problems.add(f"data[{FILE}]", "is missing; give the configuration of the queues")
        return QueuesFile((), (), problems.all)
    try:
        content = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        return _unreadable(problems, FILE, f"is not YAML: {' '.join(str(error).split())}", "correct it")
    partitions = list(Fields(content, "", problems).parts("partitions")) if isinstance(content, dict) else []
    if not partitions:
        return _unreadable(problems, "partitions", "is missing or empty", "give the partition default with its queues")
    chosen = next((each for each in partitions if each.text("name") == "default"), partitions[0])
    if len(partitions) > 1:
        problems.add("partitions", f"only {chosen.text('name') or 'the first one'} counts; put all queues into it")
    own = {name: value for name, value in chosen.content.items() if name != "queues"}
    _remark(own, "partitions[]", chosen.path, problems)
    found: dict[str, FileQueue] = {}
    for each in chosen.parts("queues"):
        name = each.text("name").lower()
        _add(each, name if name == ROOT else f"{ROOT}.{name}", found, 0)
    root = found.setdefault(ROOT, FileQueue(ROOT))
    rules = tuple(rule for each in chosen.parts("placementrules") if (rule := _rule(each, 0)) is not None)
    preempts = chosen.part("preemption").flag("enabled", default=True)
    if problems.closing and not root.closed_by:
        found[ROOT] = replace(root, closed_by=problems.closing)  # what concerns all queues
    return QueuesFile(tuple(found.values()), rules, problems.all, preempts)


def _remark(content: Mapping[str, Any], part: str, place: str, problems: Problems) -> None:
    """Records what becomes of the fields of a part of the file."""
    assert _TABLE is not None
    remarks = remarks_on(_TABLE, content, part, place)
    problems.extend(remarks.reported)
    for problem in remarks.refused:
        problems.refuse(problem)


def _unreadable(problems: Problems, path: str, found: str, remedy: str) -> QueuesFile:
    problems.add(path, f"{found}; {remedy}")
    return QueuesFile((), (), problems.all, unreadable=f"{path}: {found}; {remedy}")


def _add(given: Fields, path: str, found: dict[str, FileQueue], depth: int) -> None:
    delay = "properties.preemption.delay"
    problems = Problems((given.at(delay), given.at(f"childtemplate.{delay}")))
    queue = given.apart(problems)
    below = _take(queue, path, found, depth, problems)
    given.problems.extend(problems.all)
    for each in below:
        _add(each.apart(given.problems), f"{path}.{each.text('name').lower()}", found, depth + 1)


def _take(queue: Fields, path: str, found: dict[str, FileQueue], depth: int, problems: Problems) -> list[Fields]:
    """Adds one queue. Returns those below it."""
    if not path.rpartition(".")[2]:
        queue.remark("name", "is missing, so the queue is ignored; give one")
        return []
    if path in found:
        queue.remark("name", f"{path} is there twice, and the second one is ignored; rename it")
        return []
    if len(found) >= _MAX_QUEUES or depth > _MAX_DEPTH:
        queue.remark("queues", f"are too many or nested too deeply: {_MAX_QUEUES} queues, {_MAX_DEPTH} levels")
        return []
    own = {name: value for name, value in queue.content.items() if name != "queues"}
    _remark(own, "partitions[].queues[]", queue.path, problems)
    above, resources = found.get(path.rpartition(".")[0], FileQueue("")), queue.part("resources")
    inherited = Terms(above.terms.delay, protected=above.terms.protected)
    below = list(queue.parts("queues"))
    read = FileQueue(
        path,
        amounts(resources, "guaranteed"),
        amounts(resources, "max"),
        _terms(queue.part("properties"), inherited),
        _template(queue.part("childtemplate")) or above.template,
    )
    found[path] = replace(read, closed_by=problems.closing)
    return below


def _terms(properties: Fields, inherited: Terms) -> Terms:
    """Those that are stated, else those that are inherited."""
    protected = "disabled" if inherited.protected else "default"
    policy = properties.choice("preemption.policy", ("default", "fence", "disabled"), protected)
    return Terms(
        properties.duration("preemption.delay", inherited.delay),
        policy == "fence",
        policy == "disabled",
        _offset(properties),
        properties.choice("priority.policy", ("default", "fence"), "default") == "fence",
    )


def _template(given: Fields) -> Template | None:
    """None: there is none."""
    resources, properties = given.part("resources"), given.part("properties")
    if not any(part.names() for part in (properties, resources.part("guaranteed"), resources.part("max"))):
        return None
    stated = amounts(resources, "guaranteed"), amounts(resources, "max")
    return Template(*stated, _terms(properties, NO_TERMS))


def _offset(properties: Fields) -> int:
    """Of priorities; the file has it as a text or as a number."""
    found = properties.number("priority.offset", 0.0, least=-(2**31), largest=2**31 - 1)
    if found != int(found):
        properties.remark("priority.offset", f"{found:g} counts as {int(found)}; give a whole number")
    return int(found)


def amounts(resources: Fields, name: str) -> dict[str, int]:
    """Amounts with YuniKorn's name of cpu, which is given in cores."""
    part = resources.part(name)
    found: dict[str, int] = {}
    for resource in part.names():
        if resource == "cpu":
            part.remark(resource, "is not a resource of YuniKorn and is ignored; give vcore")
            continue
        target = "cpu" if resource == _CPU else resource
        amount = part.amount(resource, target)
        if amount is not None:
            found[target] = amount
    return found


def _rule(rule: Fields, depth: int) -> Rule | None:
    name, value = rule.text("name").lower(), rule.text("value")
    if depth:  # of the outermost rule the table tells it
        _remark({"filter": rule.part("filter").content}, "partitions[].placementrules[]", rule.path, rule.problems)
    parent = _rule(rule.part("parent"), depth + 1) if "parent" in rule and depth < _MAX_DEPTH else None
    create = rule.flag("create", default=False)
    if name == "tag" and value.lower() == "namespace":
        return Rule("namespace", "", create, parent)
    if name == "provided":
        if create:
            rule.remark("create", "creates no queues that pods name; put them into the file")
        return Rule("provided", "", False, parent)
    if name == "fixed" and value:
        return Rule("fixed", value.lower(), create, parent)
    rule.problems.refuse(
        f"{rule.at('name')}: rule {name!r} with value {value!r} is not supported, so no queue takes pods; give "
        "provided, fixed, or tag with the value namespace"
    )
    return None


def namespace_quota(annotations: Mapping[str, str]) -> NamespaceQuota:
    """The quota in the annotations of a namespace."""
    problems = Problems(())
    largest = _annotated(annotations, QUOTA, problems)
    for key, resource in ((MAX_CPU, "cpu"), (MAX_MEMORY, "memory")):
        if key in annotations and resource not in largest:
            amount = Fields({key: annotations[key]}, "metadata.annotations", problems).amount(key, resource)
            if amount is not None:
                largest[resource] = amount
    guaranteed = _annotated(annotations, GUARANTEED, problems)
    if annotations.get(MAX_APPLICATIONS, "0") != "0":
        problems.refuse(f"metadata.annotations[{MAX_APPLICATIONS}]: {APPLICATIONS}")
    return NamespaceQuota(guaranteed, largest, annotations.get(PARENT, "").lower(), problems.all, problems.closing)


def _annotated(annotations: Mapping[str, str], key: str, problems: Problems) -> dict[str, int]:
    text = annotations.get(key)
    if not text:
        return {}
    where = f"metadata.annotations[{key}]"
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        problems.unreadable(where, "is not JSON", 'give a mapping like {"cpu": "64", "memory": "100Gi"}')
        return {}
    return Fields({"": content}, where, problems).amounts("")


NEVER_PREEMPTED = LONGEST
