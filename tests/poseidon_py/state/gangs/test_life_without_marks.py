"""The life of a gang without marks, against a model: a Job whose pods come and go in any order relative to it."""

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from poseidon_py.feed.update_rows import target
from poseidon_py.state.gangs.by_owner import JOBS
from tests.poseidon_py.state.gangs.builders import JOB, owner_or_group
from tests.poseidon_py.state.gangs.rig import Rig

counts = st.integers(0, 4)


class OneJob(RuleBasedStateMachine):
    @initialize(parallelism=counts, completions=st.none() | counts)
    def start(self, parallelism, completions):
        self.rig = Rig()
        self.rig.registry.form_gangs_from(["jobs"])
        self.rig.objects.unknown.add("uid-j")
        self.job = {"parallelism": parallelism, "completions": completions, "suspend": False}
        self.succeeded = 0
        self.seen: Any = None
        """What the watch of Jobs has shown: None, a (size, left, suspended), or "gone"."""
        self.pods: dict[str, str] = {}
        """Name -> node."""
        self.single: set[str] = set()
        """Pods that were in no gang when the Job was deleted: they stay so, until something else changes them."""
        self.count = 0

    def observe_job(self):
        """The watch of Jobs catches up."""
        spec = {key: value for key, value in self.job.items() if value is not None}
        status = {"succeeded": self.succeeded, "active": len(self.pods)}
        self.rig.objects.unknown.discard("uid-j")
        self.rig.put(JOBS, owner_or_group(JOBS, "j", spec=spec, status=status))
        self.rig.registry.resolved("owner/uid-j")
        self.rig.work()
        parallelism, completions = self.job["parallelism"], self.job["completions"]
        if completions is None:
            size, left = parallelism, len(self.pods) if self.succeeded else None
        else:
            size, left = min(parallelism, completions), max(completions - self.succeeded, 0)
        self.seen = size, left, self.job["suspend"]

    @precondition(lambda self: self.seen != "gone")
    @rule()
    def the_job_is_observed(self):
        self.observe_job()

    @precondition(lambda self: self.seen != "gone")
    @rule(parallelism=counts)
    def scale(self, parallelism):
        self.job["parallelism"] = parallelism
        if self.job["completions"] is not None and self.count % 2:  # an elastic indexed Job
            self.job["completions"] = parallelism
        self.observe_job()

    @precondition(lambda self: self.seen != "gone")
    @rule(suspend=st.booleans())
    def suspend(self, suspend):
        self.job["suspend"] = suspend
        self.observe_job()

    @precondition(lambda self: self.seen not in (None, "gone"))
    @rule()
    def delete_the_job(self):
        found = self.rig.objects.by_uid["uid-j"]
        self.rig.objects.delete(JOBS, found)
        self.rig.registry.changed(JOBS, found, gone=True)
        self.rig.work()
        if self.seen[0] < 2:
            self.single = set(self.pods)
        self.seen = "gone"

    @rule()
    def create_pod(self):
        self.count += 1
        name = f"p{self.count}"
        self.pods[name] = ""
        self.rig.pod(name, owner=JOB)

    @precondition(lambda self: any(not node for node in self.pods.values()))
    @rule(data=st.data())
    def bind_pod(self, data):
        name = data.draw(st.sampled_from([name for name, node in self.pods.items() if not node]))
        self.pods[name] = "n"
        self.rig.pod(name, owner=JOB, node="n")

    @precondition(lambda self: self.pods)
    @rule(data=st.data(), succeeds=st.booleans())
    def end_pod(self, data, succeeds):
        name = data.draw(st.sampled_from(list(self.pods)))
        del self.pods[name]
        self.succeeded += succeeds
        self.rig.gone(name)  # the Job's progress is observed later

    def expected(self):
        """What a pending pod waits for, or its gang's minimum; None: it is a single pod."""
        if self.seen is None:
            return "waits for the lookup of owner/uid-j"
        if self.seen == "gone":
            return "Job ns/j does not exist any more, so that its pods are about to be deleted"
        size, left, suspended = self.seen
        if size < 2:
            return None
        if suspended:
            return "Job ns/j is suspended; its pods are placed once it is resumed"
        return max(1, size if left is None else min(size, left)), "ns/j"

    @invariant()
    def pods_have_the_gang_of_their_job(self):
        expected = self.expected()
        for name, node in self.pods.items():
            known = self.rig.known(name)
            if not node:
                assert self.rig.gang(name) == (None if name in self.single else expected)
                continue
            assert target(self.rig.store, known) is not None  # it holds its resources whatever its owner is
            if self.seen is not None:
                found = self.rig.gang(name)
                assert found == (None if isinstance(expected, str) else expected)

    @invariant()
    def a_gang_lives_as_long_as_its_job_or_a_member(self):
        groups = self.rig.registry.groups.values()
        if self.seen == "gone" and not self.pods:
            assert not groups
        assert all(set(group.members) <= {f"uid-{name}" for name in self.pods} for group in groups)

    @invariant()
    def nothing_waits_that_does_not_exist(self):
        index = self.rig.registry._index
        waiting = set().union(*index._unknown.values())
        assert waiting <= {f"uid-{name}" for name in self.pods}


TestOneJob = OneJob.TestCase
