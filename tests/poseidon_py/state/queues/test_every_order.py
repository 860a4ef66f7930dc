"""The tree and the queue of every pod do not depend on the order of events.

Objects, namespaces, owners and pods come, change and go in any order. A registry that sees the final state only has the
same tree and the same queue for every pod, so every pod whose queue has changed was described again.
"""

from dataclasses import replace

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from tests.effort import examples
from tests.poseidon_py.state.queues.rig import RESOURCES, Rig

NAMES = st.sampled_from(["a", "b", "c"])
NAMESPACES = st.sampled_from(["one", "two"])
LABELS = st.fixed_dictionaries({}, optional={"team": st.sampled_from(["a", "b"])})
SELECTORS = st.one_of(st.none(), st.just({}), st.builds(lambda team: {"matchLabels": {"team": team}}, NAMES))
KEYS = ("poseidon.io/queue", "kueue.x-k8s.io/queue-name", "kai.scheduler/queue", "yunikorn.apache.org/queue")
CHOICES = st.dictionaries(st.sampled_from(KEYS), st.sampled_from(["a", "b", "root.a"]), max_size=2)
ANNOTATIONS = st.dictionaries(
    st.sampled_from(["scheduling.volcano.sh/queue-name", "scheduling.k8s.io/group-name"]), NAMES, max_size=2
)
OWNERS = st.sampled_from(["", "j1", "j2"])
PARENT = st.one_of(st.just(""), NAMES)
KAI_FREE = {name: {"quota": 0, "limit": -1} for name in ("cpu", "memory", "gpu")}
UNREADABLE = "nothing: ["
FILES = st.sampled_from(
    [
        "partitions: [{queues: [{name: root, queues: [{name: a}, {name: default}]}]}]",
        "partitions: [{placementrules: [{name: tag, value: namespace, create: true}], queues: [{name: root}]}]",
        "partitions: [{placementrules: [{name: provided}, {name: fixed, value: a}], queues: [{name: a}]}]",
        UNREADABLE,
    ]
)
OBJECTS = st.one_of(
    st.tuples(
        st.just("ClusterQueue"),
        NAMES,
        st.just(""),
        st.builds(lambda selector, cohort: {"namespaceSelector": selector, "cohortName": cohort}, SELECTORS, PARENT),
    ),
    st.tuples(st.just("Cohort"), NAMES, st.just(""), st.builds(lambda parent: {"parentName": parent}, PARENT)),
    st.tuples(
        st.just("LocalQueue"),
        st.sampled_from(["a", "b", "default"]),
        NAMESPACES,
        st.builds(
            lambda queue, stop: {"clusterQueue": queue, "stopPolicy": stop},
            NAMES,
            st.sampled_from(["None", "Hold", "HoldAndDrain"]),
        ),
    ),
    st.tuples(
        st.just("Queue"),
        NAMES,
        st.just(""),
        st.builds(lambda selector, parent: {"namespaces": selector, "parent": parent}, SELECTORS, PARENT),
    ),
    st.tuples(
        st.just("KaiQueue"),
        st.sampled_from(["a", "b", "default-queue"]),
        st.just(""),
        st.builds(lambda parent: {"parentQueue": parent, "resources": KAI_FREE}, PARENT),
    ),
    st.tuples(
        st.just("VolcanoQueue"),
        st.sampled_from(["a", "b", "default", "root"]),
        st.just(""),
        st.builds(lambda parent: {"parent": parent}, PARENT),
    ),
    st.tuples(st.just("ElasticQuota"), NAMES, NAMESPACES, st.just({})),
    st.tuples(st.just("ConfigMap"), st.just("yunikorn-configs"), NAMESPACES, FILES),
)


class Orders(RuleBasedStateMachine):
    kind = "auto"

    def __init__(self):
        super().__init__()
        self.rig = Rig(self.kind)
        self.objects: dict[tuple[str, str, str], object] = {}
        self.namespaces: dict[str, tuple[dict, dict]] = {}
        self.jobs: dict[str, tuple[str, dict]] = {}
        self.groups: dict[tuple[str, str], dict] = {}
        self.pods: dict[str, dict] = {}

    # -- events -------------------------------------------------------------------------------------------------

    @rule(given=OBJECTS)
    def put(self, given):
        kind, name, namespace, content = given
        if (kind, namespace, name) in self.objects and self.objects[kind, namespace, name] == content:
            return
        if content == UNREADABLE and self.objects.get((kind, namespace, name), UNREADABLE) != UNREADABLE:
            return  # the last valid content counts then, which the final state does not tell: see test_closed.py
        self.objects[kind, namespace, name] = content
        self._put(self.rig, kind, namespace, name, content)

    @staticmethod
    def _put(rig, kind, namespace, name, content):
        if _resource_kind(rig, kind) not in rig.queues.kinds.sources:
            return
        if kind == "ConfigMap":
            rig.put(kind, name, namespace=namespace, data={"queues.yaml": content})
        else:
            rig.put(kind, name, content, namespace=namespace)

    @rule(at=st.integers(0, 20))
    def drop(self, at):
        if self.objects:
            kind, namespace, name = sorted(self.objects)[at % len(self.objects)]
            del self.objects[kind, namespace, name]
            if _resource_kind(self.rig, kind) in self.rig.queues.kinds.sources:
                self.rig.drop(kind, name, namespace=namespace)

    @rule(name=NAMESPACES, labels=LABELS, parent=st.sampled_from([None, "root.a"]))
    def namespace(self, name, labels, parent):
        annotations = {"yunikorn.apache.org/parentqueue": parent} if parent else {}
        self.namespaces[name] = labels, annotations
        self.rig.namespace(name, labels, annotations)

    @rule(name=NAMESPACES)
    def remove_namespace(self, name):
        if self.namespaces.pop(name, None) is not None:
            self.rig.store.remove_namespace(name)

    @rule(name=st.sampled_from(["j1", "j2"]), labels=CHOICES, above=st.sampled_from(["", "uid-j2"]))
    def job(self, name, labels, above):
        self.jobs[name] = above, labels
        self.rig.job(name, labels, above=above)

    @rule(name=NAMES, namespace=NAMESPACES, queue=NAMES)
    def group(self, name, namespace, queue):
        self.groups[namespace, name] = {"minMember": 1, "queue": queue}
        self.rig.group(name, self.groups[namespace, name], namespace=namespace)

    @rule(
        name=st.sampled_from(["p1", "p2", "p3"]),
        namespace=NAMESPACES,
        labels=CHOICES,
        annotations=ANNOTATIONS,
        owner=OWNERS,
        node=st.sampled_from(["", "n"]),
        scheduler=st.sampled_from(["poseidon", "poseidon", "other"]),
    )
    def pod(self, name, namespace, labels, annotations, owner, node, scheduler):
        if name in self.pods:
            namespace, owner = self.pods[name]["namespace"], self.pods[name]["owner"]
            node = node or self.pods[name]["node"]
            scheduler = self.pods[name]["scheduler"]
        else:
            owner = f"uid-{owner}" if owner else ""
        if scheduler == "other" and not node:
            return
        fields = {"namespace": namespace, "labels": labels, "annotations": annotations, "owner": owner}
        self.pods[name] = {**fields, "node": node, "scheduler": scheduler}
        self.rig.pod(name, **self.pods[name])

    @rule(name=st.sampled_from(["p1", "p2", "p3"]))
    def remove_pod(self, name):
        if self.pods.pop(name, None) is not None:
            self.rig.store.remove_pod(f"uid-{name}")

    # -- what must hold ---------------------------------------------------------------------------------------------

    @invariant()
    def equals_a_registry_of_the_final_state(self):
        self.rig.wait()  # a deletion opens nothing for ten seconds
        fresh = Rig(self.kind)
        for name, (labels, annotations) in self.namespaces.items():
            fresh.namespace(name, labels, annotations)
        for (kind, namespace, name), content in sorted(self.objects.items(), key=lambda each: each[0]):
            self._put(fresh, kind, namespace, name, content)
        for name, (above, labels) in self.jobs.items():
            fresh.job(name, labels, above=above)
        for (namespace, name), spec in self.groups.items():
            fresh.group(name, spec, namespace=namespace)
        for name, fields in self.pods.items():
            fresh.pod(name, **fields)
        assert self.rig.kind == fresh.kind
        for name in self.pods:
            mine, theirs = self.rig.known(name), fresh.known(name)
            assert in_seconds(mine.queue) == in_seconds(theirs.queue), name
            assert self.rig.queues.resolution_of(mine) == fresh.queues.resolution_of(theirs)
            assert self.rig.problem(name) == fresh.problem(name)
        assert self.rig.message() == fresh.message()
        assert self.rig.queues.tree.problems == fresh.queues.tree.problems
        assert set(self.rig.queues._of_pod) == set(fresh.queues._of_pod)
        assert len(self.rig.queues._choices) == len({id(each) for each in self.rig.queues._of_pod.values()})


def in_seconds(membership):
    """Within a second of their creation, the order of workloads is that of their arrival."""
    return replace(membership, created_us=membership.created_us // 1_000_000)


def _resource_kind(rig, kind):
    return rig.kind_of[RESOURCES[kind]]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["auto", "kueue", "kai", "volcano", "yunikorn", "elasticquota", "poseidon"])
def test_every_order(kind):
    machine = type("Machine", (Orders,), {"kind": kind})
    run_state_machine_as_test(machine, settings=examples(12, steps=25))
