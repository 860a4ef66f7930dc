"""YuniKorn's queues: those of `queues.yaml`, and one for each namespace if a placement rule creates them.

Without placement rules pods are in the queue that they name.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from types import MappingProxyType

from poseidon_py.describe.queues.model import (
    EVERY_NODE,
    Flavor,
    Queue,
    Quota,
    ReclaimRules,
    Rules,
    Sharing,
    Stop,
    Tree,
    Victims,
)
from poseidon_py.kube.queue_objects import keys
from poseidon_py.kube.queue_objects.fields import QueueObject
from poseidon_py.kube.queue_objects.yunikorn import (
    NEVER_PREEMPTED,
    NO_TEMPLATE,
    NO_TERMS,
    PARENT,
    ROOT,
    FileQueue,
    NamespaceQuota,
    QueuesFile,
    Rule,
    Template,
    Terms,
    namespace_quota,
    queues_file,
)
from poseidon_py.state.gangs.model import Resource
from poseidon_py.state.queues.choice import NO_QUEUE, Namespaces, Query, Resolution
from poseidon_py.state.queues.source import Declared, Source, Touched
from poseidon_py.state.queues.tree import make_tree

CONFIG = Resource("", "configmaps", ("v1",))
CONFIG_NAME = "yunikorn-configs"
_RULES = Rules(Sharing.PROPORTIONAL, reclaim=ReclaimRules.GUARANTEE, priority_first=True)
"""Priority comes before shares. Queues below their guarantee take back what others use above theirs."""


_PROVIDED = Rule("provided", "", False, None)
_DEFAULT = f"{ROOT}.default"
_FILE = ("file", CONFIG)
"""What every choice depends on."""


class YuniKorn(Source):
    kind = "yunikorn"
    resources = (CONFIG,)
    selectors = MappingProxyType({CONFIG: f"metadata.name={CONFIG_NAME}"})

    def __init__(self, namespaces: Namespaces) -> None:
        super().__init__(namespaces)
        self._files: dict[tuple[str, str], QueuesFile] = {}
        self._by_path: dict[str, FileQueue] = {}
        self._rules: tuple[Rule, ...] = ()
        self._preempts = True
        self._unreadable = ""

    @property
    def in_use(self) -> bool:
        return len(self._by_path) > 1 or bool(self._rules or self._unreadable)

    def _put(self, resource: Resource, item: QueueObject) -> Touched:
        key, now = (item.metadata.namespace, item.metadata.name), queues_file(item)
        before = self._files.get(key)
        if now.unreadable and before is not None and not before.unreadable:
            problem = f"{now.unreadable}; its last valid content counts until then"
            now = replace(before, problems=(problem, *now.problems[1:]))
        if before == now:
            return set()
        self._files[key] = now
        return self._take()

    def _drop(self, resource: Resource, namespace: str, name: str) -> Touched:
        self._files.pop((namespace, name), None)
        return self._take()

    def _take(self) -> Touched:
        """Of several files the first by namespace counts."""
        found = self._files[min(self._files)] if self._files else QueuesFile((), (), ())
        self._by_path = {queue.path: queue for queue in found.queues}
        self._rules, self._preempts = found.rules, found.preempts
        self._unreadable = found.unreadable
        return {_FILE}

    # -- the queue of a choice --------------------------------------------------------------------------------

    def resolve(self, query: Query) -> Resolution:
        query.depends_on.add(_FILE)
        found = self._chosen(query)
        if found != NO_QUEUE and query.annotation(keys.YUNIKORN_PREEMPTION) == "false":
            return found._replace(preemptible=False)
        return found

    def _chosen(self, query: Query) -> Resolution:
        if self._unreadable:
            problem = f"the queues of YuniKorn are not known: {self._unreadable}"
            return Resolution(f"yunikorn/{ROOT}", ROOT, f"ConfigMap {CONFIG_NAME}", problem)
        if name := query.label(keys.OWN):
            return Resolution(f"yunikorn/{name}", name, f"label {keys.OWN}")
        for rule in self._rules or (_PROVIDED,):
            path, chosen_by = self._place(rule, query)
            if path and (path in self._by_path or self._is_created(path, query)):
                return Resolution(f"yunikorn/{path}", path, chosen_by)
        path, chosen_by = self._provided(query)
        if path:
            return Resolution(f"yunikorn/{path}", path, chosen_by)
        if _DEFAULT in self._by_path and query.takes_default:
            return Resolution(f"yunikorn/{_DEFAULT}", _DEFAULT, f"label {keys.YUNIKORN}")
        return NO_QUEUE

    def named(self, query: Query) -> Resolution:
        """By its own label or annotation; the other one, `queue`, can mean anything."""
        if name := query.label(keys.YUNIKORN):
            return Resolution(f"yunikorn/{_full(name)}", _full(name), f"label {keys.YUNIKORN}")
        if name := query.annotation(keys.YUNIKORN):
            return Resolution(f"yunikorn/{_full(name)}", _full(name), f"annotation {keys.YUNIKORN}")
        return NO_QUEUE

    def _place(self, rule: Rule, query: Query) -> tuple[str, str]:
        """The queue that a rule gives, and where it comes from; empty: the rule gives none."""
        if rule.name == "provided":
            path, chosen_by = self._provided(query)
        elif rule.name == "fixed":
            path, chosen_by = rule.value, "the placement rules of queues.yaml"
        else:
            path, chosen_by = query.namespace, f"namespace {query.namespace}"
            if above := query.namespace_annotations().get(PARENT):
                return f"{_full(above)}.{path}", chosen_by
        if not path or path == ROOT or path.startswith(f"{ROOT}."):
            return path, chosen_by
        above = self._place(rule.parent, query)[0] if rule.parent is not None else ROOT
        return (f"{above}.{path}" if above else ""), chosen_by

    def _provided(self, query: Query) -> tuple[str, str]:
        for label in (keys.YUNIKORN, keys.YUNIKORN_SHORT):
            if name := query.label(label):
                return _full(name), f"label {label}"
        for annotation in (keys.YUNIKORN, keys.YUNIKORN_SHORT):
            if name := query.annotation(annotation):
                return _full(name), f"annotation {annotation}"
        return "", ""

    def _is_created(self, path: str, query: Query) -> bool:
        """Whether a path is that of a queue which a placement rule creates for a namespace."""
        namespace = path.rpartition(".")[2]
        query.depends_on.add(("namespace", namespace))
        return namespace in self.namespaces.annotations and self._created_for(namespace) == path

    def _created_for(self, namespace: str) -> str:
        """The path of the queue that a placement rule creates for a namespace; empty: none does."""
        rule = next((rule for rule in self._rules if rule.name == "namespace" and rule.create), None)
        if rule is None:
            return ""
        parent = self.namespaces.annotations[namespace].get(PARENT)
        if not parent and rule.parent is not None:
            if rule.parent.name != "fixed":
                return ""  # it depends on the pod
            parent = rule.parent.value
        return f"{_full(parent or ROOT)}.{namespace}"

    def _of_namespaces(self) -> Iterator[tuple[str, str]]:
        """Paths and namespaces of the queues that a placement rule creates."""
        for namespace in self.namespaces.annotations:
            path = self._created_for(namespace)
            if path and path not in self._by_path:
                yield path, namespace

    # -- the tree ---------------------------------------------------------------------------------------------

    def tree(self) -> Tree:
        queues: Iterable[Queue] = self._queues()
        if not self._preempts:
            queues = (replace(queue, reclaim=Victims.NEVER) for queue in queues)
        return make_tree(queues, (Flavor(EVERY_NODE),), _RULES, "parent")

    def _queues(self) -> Iterator[Queue]:
        for queue in self._by_path.values():
            yield _queue(
                queue.path,
                queue.guaranteed,
                queue.largest,
                queue.terms,
                closed=bool(queue.closed_by),
            )
        created: set[str] = set()
        for path, namespace in self._of_namespaces():
            above = path.rpartition(".")[0]
            if above not in self._by_path and above not in created:
                created.add(above)
                yield _queue(above, {}, {})
            template = self._template(above)
            quota = namespace_quota(self.namespaces.annotations[namespace])
            guaranteed, largest = template.guaranteed | quota.guaranteed, template.largest | quota.largest
            yield _queue(path, guaranteed, largest, template.terms, closed=bool(quota.closed_by))

    def _template(self, path: str) -> Template:
        """That of a queue, which need not be in the file, for those that are created below it."""
        while path and path not in self._by_path:
            path = path.rpartition(".")[0]
        return self._by_path[path].template if path else NO_TEMPLATE

    def declared(self) -> Iterable[Declared]:
        used = min(self._files) if self._files else None
        for key, file in self._files.items():
            ref = self.refs[CONFIG, *key]
            why = "" if key == used else f"the one in namespace {used[0] if used else ''} counts; delete one of them"
            yield Declared(ref, f"yunikorn/{ROOT}" if not why else "", (*file.problems, *self._of_annotations()), why)

    def closed(self) -> Mapping[str, str]:
        """By queue, not by object."""
        found = {f"yunikorn/{path}": queue.closed_by for path, queue in self._by_path.items() if queue.closed_by}
        for path, namespace in self._of_namespaces():
            if why := namespace_quota(self.namespaces.annotations[namespace]).closed_by:
                found[f"yunikorn/{path}"] = f"namespace {namespace}: {why}"
        return found

    def _of_annotations(self) -> Iterator[str]:
        for _, namespace in self._of_namespaces():
            quota: NamespaceQuota = namespace_quota(self.namespaces.annotations[namespace])
            yield from (f"namespace {namespace}: {problem}" for problem in quota.problems)


def _queue(
    path: str,
    guaranteed: Mapping[str, int],
    largest: Mapping[str, int],
    terms: Terms = NO_TERMS,
    *,
    closed: bool = False,
) -> Queue:
    above, min_runtime = path.rpartition(".")[0], NEVER_PREEMPTED if terms.protected else 0.0
    return Queue(
        f"yunikorn/{path}",
        path,
        f"yunikorn/{above}" if above else "",
        tuple(
            Quota(EVERY_NODE, resource, guaranteed.get(resource, 0), limit=largest.get(resource))
            for resource in dict.fromkeys((*guaranteed, *largest))
        ),
        reclaim=Victims.ANY,
        stop=Stop.HOLD if closed else Stop.NONE,
        fence=terms.fenced,
        preempt_min_runtime_seconds=min_runtime,
        reclaim_min_runtime_seconds=min_runtime,
        preemption_delay_seconds=terms.delay,
        priority_offset=terms.offset,
        priority_fence=terms.hides_priority,
    )


def _full(name: str) -> str:
    """A name that a pod gives as a path from the root."""
    name = name.lower()
    return name if name == ROOT or name.startswith(f"{ROOT}.") else f"{ROOT}.{name}"
