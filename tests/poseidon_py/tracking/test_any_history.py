"""Any history of pods, against a model in plain Python: the states of jobs, counts and totals, and restarts.

The model knows pods as the API server has them and what has become of those that are gone. It says in one place what
state a job is in (`Model.expected`), without the product's code.
"""

from collections import Counter
from dataclasses import dataclass, field, replace

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from tests.effort import examples
from tests.poseidon_py.tracking.histories import START, Life, Watched, timestamp

SETTLE = 30
JOBS = {"telling": "Job", "silent": "Custom"}
"""Jobs with an owner whose end is known, and with one of which nothing is known; others are pods of their own."""
ALIVE = ("Pending", "Bound", "Running", "WillEvicted", "Terminating")
ON_NODE = ("Running", "WillEvicted", "Terminating")


@dataclass
class Story:
    """What has become of a job."""

    verdict: str | None = None
    ended: int = 0
    newest: int = 0
    over: bool = False
    bad: list[tuple[str, int, int]] = field(default_factory=list)
    """Of pods that failed or were evicted: how, when, and when they were created."""
    gone: Counter[str] = field(default_factory=Counter)
    """States of pods that are gone."""
    seen: int = 0
    collected: bool = False
    """Whether pods that had ended are gone: another process cannot know of them."""


def state_of(life):
    if life.phase == "Succeeded":
        return "Terminating" if life.deleting and life.ended > life.deleting else "Succeeded"
    if life.phase == "Failed":
        if life.disruption:
            return "Evicted"
        return "Terminating" if life.deleting and life.ended > life.deleting else "Failed"
    if life.deleting:
        return "Terminating"
    if life.bound and life.annotations.get("poseidon.io/preemption-state") == "WillEvicted":
        return "WillEvicted"
    return "Running" if life.started else "Bound" if life.bound else "Pending"


class History(RuleBasedStateMachine):
    @initialize()
    def begin(self):
        self.now = START + 1
        self.pods: dict[str, Life] = {}
        self.stories: dict[str, Story] = {}
        self.number = 0
        self.totals: Counter[str] = Counter()
        self.noted: dict[str, str] = {}
        """How pods ended."""
        self.watched = Watched(now=self.now)

    # -- the API server ---------------------------------------------------------------------------------------

    def _tick(self, seconds=2):
        self.now += seconds
        self.watched.now = self.now

    def _job(self, life):
        return life.owner.removeprefix("uid-") or life.name

    def _set(self, life):
        """The tracker observes it, and the model notes an end."""
        self.pods[life.name] = life
        story = self.stories[self._job(life)]
        if life.name not in self.noted and state_of(life) in ("Succeeded", "Failed", "Evicted"):
            self._end(life, story, state_of(life), life.ended)
        self.watched.tell(life)

    def _end(self, life, story, how, at):
        self.noted[life.name] = how
        self.totals[how.lower()] += 1
        story.ended = max(story.ended, at)
        if how in ("Failed", "Evicted"):
            story.bad.append((how, (life.deleting or at) if how == "Evicted" else at, life.created))

    @rule(job=st.sampled_from([*JOBS, *JOBS, ""]))
    def create(self, job):
        self._tick()
        name = f"p{self.number}"
        self.number += 1
        life = Life(name, created=self.now, owner=f"uid-{job}" if job else "", kind=JOBS.get(job, ""))
        story = self.stories.setdefault(job or name, Story())
        if job == "telling" and story.verdict is None:
            story.verdict = ""
            self.watched.verdicts["uid-telling"] = ""
        story.newest, story.over = self.now, False
        story.seen += 1
        if story.verdict:
            story.verdict = self.watched.verdicts["uid-telling"] = ""
        self._set(life)

    def _some(self, data, *states):
        names = sorted(name for name, life in self.pods.items() if state_of(life) in states)
        return self.pods[data.draw(st.sampled_from(names))] if names else None

    @rule(data=st.data())
    def bind(self, data):
        life = self._some(data, "Pending")
        if life is not None:
            self._tick()
            self._set(life.bind(self.now))

    @rule(data=st.data())
    def start(self, data):
        life = self._some(data, "Pending", "Bound")
        if life is not None:
            self._tick()
            self._set(life.start(self.now))

    @rule(data=st.data(), how=st.sampled_from(["succeed", "succeed", "fail", "evict", "while deleted"]))
    def end(self, data, how):
        life = self._some(data, "Terminating") if how == "while deleted" else self._some(data, "Running", "WillEvicted")
        if life is None or life.ended or not life.started:
            return
        self._tick()
        if how == "succeed":
            self._set(life.succeed(self.now))
        else:
            self._set(life.fail(self.now, disruption="TerminationByKubelet" if how == "evict" else life.disruption))

    @rule(data=st.data(), disruption=st.sampled_from(["", "PreemptionByScheduler", "EvictionByEvictionAPI"]))
    def delete(self, data, disruption):
        life = self._some(data, "Bound", "Running", "WillEvicted")
        if life is not None:
            self._tick()
            self._set(life.delete(self.now, disruption))

    @rule(data=st.data(), reported=st.booleans())
    def vanish(self, data, reported):
        """A deletion ends, a pending pod is deleted, or one that has ended is collected."""
        life = self._some(data, "Terminating", "Pending", "Succeeded", "Failed", "Evicted")
        if life is None:
            return
        self._tick()
        del self.pods[life.name]
        story = self.stories[self._job(life)]
        story.collected = True
        if life.name not in self.noted:
            how = "Evicted" if life.disruption else "Deleted"
            self._end(life, story, how, life.ended or self.now)
        story.gone[self.noted[life.name]] += 1
        if reported:
            self.watched.gone(life)
        else:  # the watch was broken: a list tells
            self.watched.tracker.listed({each.uid for each in self.pods.values()})

    @rule(data=st.data(), privileged=st.booleans())
    def notice(self, data, privileged):
        """One of a job that waits gives notice, or one that runs has it."""
        life = self._some(data, "Pending") if privileged else self._some(data, "Running", "Bound")
        if life is not None:
            self._tick()
            state = "Privileged" if privileged else "WillEvicted"
            self._set(life.annotate(preemption_state=state, eviction_time=timestamp(self.now + 60)))

    @rule(data=st.data())
    def withdraw(self, data):
        life = self._some(data, "Pending", "Bound", "Running", "WillEvicted")
        if life is not None:
            self._set(replace(life, annotations={}))

    @rule(verdict=st.sampled_from(["Succeeded", "Failed"]))
    @precondition(lambda self: self.stories.get("telling") and not self._alive("telling"))
    def tell_the_end(self, verdict):
        story = self.stories["telling"]
        if story.verdict == "":
            story.verdict = self.watched.verdicts["uid-telling"] = verdict

    @rule(seconds=st.sampled_from([1, 10, SETTLE]))
    def wait(self, seconds):
        self._tick(seconds)

    # -- the tracker ------------------------------------------------------------------------------------------

    @rule()
    def observe_again(self):
        for life in self.pods.values():
            self.watched.tell(life)

    @rule(seed=st.randoms(use_true_random=False))
    def restart(self, seed):
        """Another process finds the same states, unless it lacks pods that had ended."""
        lives = list(self.pods.values())
        seed.shuffle(lives)
        again = Watched(*lives, now=self.now, verdicts=self.watched.verdicts)
        for name, story in self.stories.items():
            if self._alive(name) or (not story.collected and any(self._job(life) == name for life in lives)):
                assert again.state(name) == self._expected(name), name
        assert not +again.illegal()

    @invariant()
    def agrees(self):
        if "watched" not in self.__dict__:
            return
        self.watched.tracker.sweep()
        for name, story in self.stories.items():
            assert self.watched.state(name) == self._expected(name), name
            job = self.watched.job(name)
            present = Counter(state_of(life) for life in self.pods.values() if self._job(life) == name)
            counts = Counter({str(state): count for task in job.tasks.values() for state, count in task.counts.items()})
            assert +counts == present + story.gone, name
            assert job.figures().created == story.seen == counts.total()
            assert job.figures().retries == sum(self._replaced(story, at, created) for _, at, created in story.bad)
        assert not +self.watched.illegal()
        totals = self.watched.tracker.accounts.of_users().get("default")
        found = (
            {}
            if totals is None
            else {how: getattr(totals, how) for how in ("succeeded", "failed", "evicted", "deleted")}
        )
        assert +Counter(found) == self.totals
        self._chains()

    def _chains(self):
        """Each transition begins where the one before of the same machine has ended."""
        last: dict[object, str] = {}
        for it in self.watched.passed:
            key = (it.machine, it.kind, it.job, it.job_uid, it.task, it.pod_uid)
            assert last.get(key, "Absent" if it.machine == "replica" else "") == it.old, it
            last[key] = it.new

    # -- the model --------------------------------------------------------------------------------------------

    def _alive(self, name):
        return [life for life in self.pods.values() if self._job(life) == name and state_of(life) in ALIVE]

    @staticmethod
    def _replaced(story, at, created):
        return at <= story.newest and created < story.newest

    def _expected(self, name):
        story, alive = self.stories[name], self._alive(name)
        states = [state_of(life) for life in alive]
        if alive:
            leaving = [life for life in alive if life.bound and state_of(life) in ("WillEvicted", "Terminating")]
            if any(life.annotations.get("poseidon.io/preemption-state") == "WillEvicted" for life in leaving):
                return "WillEvicted"
            if any(life.annotations.get("poseidon.io/preemption-state") == "Privileged" for life in alive):
                return "Privileged"
            return "Running" if set(states) & set(ON_NODE) else "Pending"
        if name not in JOBS or story.verdict:
            story.over = True
        if story.verdict is None and self.now >= story.ended + SETTLE:
            story.over = True
        mine = Counter(state_of(life) for life in self.pods.values() if self._job(life) == name) + story.gone
        if not story.over:
            return "Running" if mine["Succeeded"] or mine["Failed"] else "Pending"
        if story.verdict:
            return story.verdict
        open_ends = {how for how, at, created in story.bad if not self._replaced(story, at, created)}
        if "Failed" in open_ends:
            return "Failed"
        return "Succeeded" if mine["Succeeded"] and not open_ends else "Stopped"


TestHistory = History.TestCase
TestHistory.settings = examples(100, steps=50, thorough=3600)
