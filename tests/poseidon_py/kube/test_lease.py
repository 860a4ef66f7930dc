"""Leader election: replicas with separate clocks, a lease with optimistic concurrency, and virtual time."""

import asyncio
import json

import pytest

from poseidon_py.kube.client import ApiError, ConflictError, LostAnswerError, NotFoundError, UnreachableError
from poseidon_py.kube.leader.leader_record import LEADER, LeaderRecord, record_of
from poseidon_py.kube.lease import SCHEDULER_NAMES, Election
from tests.poseidon_py.settling import settle

FOLDER = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"


class World:
    """Virtual time, and one Lease with optimistic concurrency."""

    def __init__(self) -> None:
        self.now = 100.0
        self.sleepers: list[tuple[float, asyncio.Future]] = []
        self.lease: dict | None = None
        self.version = 0
        self.down: set[str] = set()
        self.denied: set[str] = set()

    async def sleep(self, seconds):
        waiter = asyncio.get_running_loop().create_future()
        self.sleepers.append((self.now + seconds, waiter))
        await waiter

    async def pass_time(self, seconds):
        end = self.now + seconds
        await settle()
        while True:
            self.sleepers = [(at, w) for at, w in self.sleepers if not w.done()]
            due = [at for at, _ in self.sleepers if at <= end]
            if not due:
                break
            self.now = min(due)
            for at, waiter in self.sleepers:
                if at <= self.now and not waiter.done():
                    waiter.set_result(None)
            await settle()
        self.now = end


class Api:
    def __init__(self, world: World, who: str) -> None:
        self.world, self.who = world, who
        self.hang = False
        self.slow = 0.0
        """Seconds until the answer to a change arrives that is made at once."""

    async def _reach(self):
        if self.hang:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        if self.who in self.world.down:
            raise UnreachableError("down")
        if self.who in self.world.denied:
            raise ApiError(403, "Forbidden", "no")

    async def call(self, verb, path, body=b"", content_type="", timeout=30.0):
        await self._reach()
        assert (verb, path) == ("GET", f"{FOLDER}/poseidon")
        if self.world.lease is None:
            raise NotFoundError(404, "", "")
        return json.dumps(self.world.lease).encode()

    async def create(self, path, body, timeout=30.0):
        await self._reach()
        assert path == FOLDER
        if self.world.lease is not None:
            raise ConflictError(409, "AlreadyExists", "")
        answer = self._store(body)
        if self.slow:
            await self.world.sleep(self.slow)
        return answer

    async def update(self, path, body, timeout=30.0):
        await self._reach()
        if body["metadata"]["resourceVersion"] != str(self.world.version):
            raise ConflictError(409, "Conflict", "")
        answer = self._store(body)
        if self.slow:
            await self.world.sleep(self.slow)
        return answer

    def _store(self, body):
        self.world.version += 1
        self.world.lease = json.loads(json.dumps(body))
        self.world.lease["metadata"]["resourceVersion"] = str(self.world.version)
        return b"{}"


class Replica:
    def __init__(self, world: World, who: str, skew: float = 0.0, **options) -> None:
        self.api = Api(world, who)
        self.log: list[str] = []
        self.losses: list[str] = []
        self.gains: list[str] = []
        self.election = Election(
            self.api,
            name="poseidon",
            namespace="kube-system",
            identity=who,
            started=lambda: self.log.append("started"),
            stopped=lambda: self.log.append("stopped"),
            sleep=world.sleep,
            monotonic=lambda: world.now,
            now=lambda: world.now + skew,
            rng=lambda: 0.5,
            changed=self._changed,
            **options,
        )
        self.task = asyncio.create_task(self.election.run())

    def _changed(self, leads, cause):
        (self.gains if leads else self.losses).append(cause)

    async def stop(self):
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)

    @property
    def leads(self):
        return self.election.leading


@pytest.fixture
async def world():
    made = []
    world = World()

    def replica(who, skew=0.0, **options):
        made.append(Replica(world, who, skew, **options))
        return made[-1]

    world.replica = replica  # type: ignore[attr-defined]
    yield world
    for each in made:
        await each.stop()


async def test_a_single_replica_creates_the_lease_and_leads(world):
    a = world.replica("a")
    await world.pass_time(0)
    assert (a.leads, a.log) == (True, ["started"])
    spec = world.lease["spec"]
    assert (spec["holderIdentity"], spec["leaseDurationSeconds"], spec["leaseTransitions"]) == ("a", 15, 0)
    assert spec["renewTime"] == "1970-01-01T00:01:40.000000Z"


async def test_a_lease_that_is_renewed_again_and_again_logs_two_lines(world, caplog):
    """Who leads, and that the other one sees it."""
    with caplog.at_level("INFO"):
        first = world.replica("a")
        await world.pass_time(10)
        world.replica("b")
        await world.pass_time(300)
    assert first.leads
    assert [each.getMessage() for each in caplog.records] == [
        "leading: a holds lease kube-system/poseidon, which had no holder",
        "the leader is a",
    ]


async def test_of_two_only_one_leads_and_it_renews(world):
    a, b = world.replica("a"), world.replica("b")
    for _ in range(30):
        await world.pass_time(2)
        assert a.leads + b.leads == 1
    assert world.version >= 29
    assert world.lease["spec"]["leaseTransitions"] == 0
    assert world.lease["spec"]["acquireTime"] == "1970-01-01T00:01:40.000000Z"


async def test_a_standby_takes_over_when_the_lease_has_not_changed_for_its_duration(world):
    a = world.replica("a")
    await world.pass_time(4)
    b = world.replica("b")
    await world.pass_time(0)
    world.down.add("a")
    await world.pass_time(11)
    assert (a.leads, b.leads) == (False, False)  # the leader stops before others may start
    await world.pass_time(9)
    assert b.leads
    assert world.lease["spec"]["leaseTransitions"] == 1
    assert (a.gains, a.losses, b.gains) == (["free"], ["error"], ["expired"])


async def test_there_are_never_two_leaders_with_any_outages_and_clocks(world):
    a, b, c = world.replica("a", skew=500.0), world.replica("b", skew=-500.0), world.replica("c")
    leaders = set()
    for number in range(60):
        world.down = {"abc"[number // 10 % 3]}
        await world.pass_time(3)
        assert a.leads + b.leads + c.leads <= 1
        leaders |= {r.election.identity for r in (a, b, c) if r.leads}
    assert len(leaders) > 1


async def test_a_leader_that_cannot_renew_stops_at_its_deadline_even_if_a_request_hangs(world, monkeypatch):
    a = world.replica("a")
    await world.pass_time(2)
    limits = []

    class Timeout:
        def __init__(self, left):
            limits.append(left)

        async def __aenter__(self):
            if a.api.hang:
                raise TimeoutError

        async def __aexit__(self, *_):
            return False

    monkeypatch.setattr(asyncio, "timeout", Timeout)
    a.api.hang = True
    await world.pass_time(2)
    assert limits == [8.0]  # what is left of the ten seconds since the renewal
    assert a.log == ["started", "stopped"]


async def test_a_leader_that_finds_another_holder_stops_at_once(world):
    a = world.replica("a")
    await world.pass_time(0)
    world.lease["spec"]["holderIdentity"] = "usurper"
    await world.pass_time(2)
    assert a.log == ["started", "stopped"]
    await world.pass_time(30)  # which does not renew: ours again
    assert a.leads


async def test_a_short_failure_does_not_end_leadership(world):
    a = world.replica("a")
    await world.pass_time(2)
    world.down.add("a")
    await world.pass_time(6)
    world.down.clear()
    await world.pass_time(20)
    assert a.log == ["started"]


async def test_a_released_lease_is_taken_without_waiting_for_it_to_expire(world):
    a = world.replica("a")
    await world.pass_time(4)
    b = world.replica("b")
    await world.pass_time(0)
    await a.stop()
    await a.election.release()
    assert "holderIdentity" not in world.lease["spec"]
    await world.pass_time(4)
    assert b.leads


async def test_only_the_holder_releases(world):
    a, b = world.replica("a"), world.replica("b")
    await world.pass_time(4)
    loser = b if a.leads else a
    await loser.election.release()
    assert world.lease["spec"]["holderIdentity"] == ("a" if a.leads else "b")


async def test_two_replicas_create_the_lease_at_once(world):
    a, b = world.replica("a"), world.replica("b")
    await world.pass_time(1)
    assert a.leads + b.leads == 1


async def test_a_lost_answer_to_the_own_renewal_does_not_confuse(world):
    a = world.replica("a")
    await world.pass_time(2)
    update = a.api.update

    async def lost(*arguments, **fields):
        await update(*arguments, **fields)
        raise LostAnswerError("reset")

    a.api.update = lost
    await world.pass_time(2)
    a.api.update = update
    await world.pass_time(10)
    assert a.log == ["started"]


def test_durations_that_cannot_work_are_refused():
    with pytest.raises(ValueError, match="renew_deadline"):
        Election(
            Api(World(), "z"),
            name="x",
            namespace="y",
            identity="z",
            started=print,
            stopped=print,
            lease_duration=5,
            renew_deadline=10,
        )


@pytest.mark.parametrize("renewed", [0, 20])
async def test_a_slow_answer_does_not_make_two_leaders(world, renewed):
    """The others count from when they observe the lease, that is, from its write or later."""
    a = world.replica("a")
    a.api.slow = 0 if renewed else 7.5
    await world.pass_time(1)
    b = world.replica("b")
    await world.pass_time(renewed)
    a.api.slow = 7.5
    await world.pass_time(3 if renewed else 7)
    world.down.add("a")
    for _ in range(300):
        await world.pass_time(0.1)
        assert not (a.leads and b.leads)
    assert b.leads


async def test_a_suspended_leader_detects_its_expired_lease_by_its_clock(world):
    a = world.replica("a")
    await world.pass_time(1)
    assert a.election.holds()
    world.now += 12  # nothing of it has run since
    assert (a.leads, a.election.holds()) == (True, False)


async def test_the_lease_is_never_written_for_less_than_it_is_held(world):
    world.replica("a").election._duration = 2.9
    await world.pass_time(1)
    assert world.lease["spec"]["leaseDurationSeconds"] == 3


async def test_a_forbidden_replica_stands_by_names_the_remedy_and_leads_once_allowed(world, caplog):
    a = world.replica("a")
    world.denied.add("a")
    await world.pass_time(10)
    assert a.log == []
    assert (
        "kube-system/poseidon: 403 Forbidden: no; standing by until its Role (docs/rbac.md) allows that" in caplog.text
    )
    world.denied.clear()
    await world.pass_time(10)
    assert a.leads


@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"spec": []}, id="no object"),
        pytest.param({"metadata": "poseidon"}, id="metadata"),
        pytest.param({"spec": {"holderIdentity": 5}}, id="holder"),
        pytest.param({"spec": {"leaseDurationSeconds": "soon"}}, id="duration"),
        pytest.param({"spec": {"leaseTransitions": "many"}}, id="transitions"),
    ],
)
async def test_an_invalid_lease_keeps_a_standby_waiting(world, change, caplog):
    a = world.replica("a")
    await world.pass_time(0)
    await a.stop()
    good, world.lease = world.lease, {**world.lease, **change}
    b = world.replica("b")
    await world.pass_time(60)
    assert not b.leads
    assert not b.task.done()
    assert "lease kube-system/poseidon: the answer is malformed" in caplog.text
    world.lease = good
    await world.pass_time(60)
    assert b.leads


async def test_an_invalid_lease_is_not_released(world, caplog):
    a = world.replica("a")
    await world.pass_time(0)
    await a.stop()
    world.lease["spec"] = "mine"
    await a.election.release()
    assert "cannot release lease" in caplog.text


# -- why leadership ends -----------------------------------------------------------------------------------------------


async def test_a_leader_whose_requests_fail_says_with_which_error(world, caplog):
    a = world.replica("a")
    await world.pass_time(2)
    world.down.add("a")
    await world.pass_time(12)
    assert a.losses == ["error"]
    assert "standing by, because lease kube-system/poseidon is lost: it was not renewed for 10.0 s; down" in caplog.text


async def test_a_leader_that_gets_no_answer_says_for_how_long(world, caplog, monkeypatch):
    a = world.replica("a")
    await world.pass_time(2)

    class Timeout:
        """Ends a request that hangs when its time is over."""

        def __init__(self, left):
            self.left = left

        async def __aenter__(self):
            if a.api.hang:
                world.now += self.left
                raise TimeoutError

        async def __aexit__(self, *_):
            return False

    monkeypatch.setattr(asyncio, "timeout", Timeout)
    a.api.hang = True
    await world.pass_time(2)
    assert a.losses == ["unanswered"]
    assert "it was not renewed for 10.0 s; the last request was not answered within 8.0 s" in caplog.text


async def test_a_leader_whose_requests_are_refused_does_not_blame_the_last_one(world, caplog, monkeypatch):
    """It is sent when the time is over, and gets no answer before that."""
    a = world.replica("a")
    await world.pass_time(0)
    world.denied.add("a")
    reach = a.api._reach

    async def in_time():
        if world.now >= a.election._renewed + 10:
            world.now += 0.01
            raise TimeoutError
        await reach()

    monkeypatch.setattr(a.api, "_reach", in_time)
    await world.pass_time(10)
    assert a.losses == ["error"]
    assert "is lost: it was not renewed for 10.0 s; 403 Forbidden: no\n" in caplog.text


async def test_an_error_that_repeats_itself_is_logged_once(world, caplog):
    a = world.replica("a")
    await world.pass_time(0)
    warned = "cannot use lease kube-system/poseidon: "
    world.denied.add("a")
    await world.pass_time(60)
    assert caplog.text.count(warned) == 1
    world.down.add("a")
    await world.pass_time(30)
    assert caplog.text.count(warned) == 2
    world.down.clear()
    world.denied.clear()
    await world.pass_time(5)
    assert a.leads
    world.denied.add("a")
    await world.pass_time(30)
    assert caplog.text.count(warned) == 3


async def test_a_leader_that_did_not_run_says_so(world, caplog):
    a = world.replica("a")
    await world.pass_time(2)
    sleep = a.election._sleep

    async def late(seconds):
        await sleep(seconds)
        world.now += 9.5

    a.election._sleep = late
    await world.pass_time(4)
    assert a.losses == ["late"]
    assert "it was not renewed for 11.5 s; this process was late by 9.5 s, as if suspended or short of" in caplog.text


async def test_a_leader_names_the_one_that_took_the_lease(world, caplog):
    a = world.replica("a")
    await world.pass_time(0)
    world.lease["spec"]["holderIdentity"] = "usurper"
    await world.pass_time(2)
    assert a.losses == ["taken"]
    assert "lease kube-system/poseidon is lost: usurper holds it" in caplog.text


# -- without taking part in the election -------------------------------------------------------------------------------


async def test_without_an_election_a_process_leads_where_nobody_holds_the_lease_and_writes_none(world):
    a = world.replica("a", takes_part=False)
    await world.pass_time(30)
    assert (a.log, world.lease, a.election.holds()) == (["started"], None, True)
    await a.stop()
    await a.election.release()
    assert world.lease is None


async def test_without_an_election_a_process_stops_when_another_one_takes_the_lease_and_goes_on_when_it_is_free(
    world, caplog
):
    a = world.replica("a", takes_part=False)
    await world.pass_time(10)
    b = world.replica("b")
    await world.pass_time(2)
    assert (a.leads, b.leads, a.losses) == (False, True, ["taken"])
    assert (
        "b holds it, and this process takes no part in the election: stop it, or run with --leader-elect" in caplog.text
    )
    await b.stop()
    await world.pass_time(14)
    assert not a.leads  # the lease may be renewed yet
    await world.pass_time(6)
    assert a.leads


async def test_without_an_election_a_process_that_cannot_read_the_lease_does_not_lead(world):
    world.denied.add("a")
    a = world.replica("a", takes_part=False)
    await world.pass_time(30)
    assert a.log == []
    world.denied.clear()
    await world.pass_time(5)
    assert a.leads
    world.denied.add("a")
    await world.pass_time(11)
    assert (a.log, a.election.holds(), a.losses) == (["started", "stopped"], False, ["error"])


@pytest.mark.parametrize(
    ("lease", "seconds", "rival"),
    [
        pytest.param(None, 0, "", id="none"),
        pytest.param({}, 14, "b, scheduler of poseidon, holds lease kube-system/poseidon, renewed at", id="fresh"),
        pytest.param({}, 15, "", id="expired"),
        pytest.param({"holderIdentity": None}, 0, "", id="released"),
        pytest.param({"renewTime": "2999-01-01T00:00:00Z"}, 0, "b, scheduler of poseidon, holds", id="of the future"),
    ],
)
async def test_who_holds_the_lease_at_the_start(world, lease, seconds, rival):
    if lease is not None:
        b = world.replica("b", description={SCHEDULER_NAMES: "poseidon"})
        await world.pass_time(0)
        await b.stop()
        world.lease["spec"] |= lease
    world.now += seconds
    found = await Replica(world, "a", takes_part=False).election.rival()
    assert found.startswith(rival) if rival else found == ""


async def test_a_scheduler_of_other_pods_is_told_to_use_a_lease_of_its_own(world, caplog):
    world.replica("a", description={SCHEDULER_NAMES: "poseidon"})
    await world.pass_time(0)
    world.replica("b", description={SCHEDULER_NAMES: "poseidon"})
    await world.pass_time(30)
    assert "nobody schedules" not in caplog.text
    world.replica("c", description={SCHEDULER_NAMES: "batch"})
    await world.pass_time(30)
    warnings = [each for each in caplog.messages if "nobody schedules" in each]
    assert warnings == [
        "a holds lease kube-system/poseidon and is the scheduler of poseidon, so nobody schedules the pods of batch: "
        "give this scheduler a --lease-name of its own, and allow it in the Role"
    ]


async def test_a_standby_says_who_leads_and_where(world, caplog):
    """By the annotation of the holder; that of a former one, which another program left there, does not count."""
    caplog.set_level("INFO")
    record = LeaderRecord("a", version="0.1.0", host="h", pod="kube-system/poseidon-0", health="0.0.0.0:10271")
    a = world.replica("a", description={LEADER: record.annotation()})
    await world.pass_time(0)
    world.replica("b", description={LEADER: LeaderRecord("b", version="0.2.0", host="laptop").annotation()})
    await world.pass_time(5)
    assert "the leader is a (pod kube-system/poseidon-0, version 0.1.0)" in caplog.messages
    await a.stop()
    await world.pass_time(30)
    assert record_of(world.lease["metadata"]["annotations"], "b") == LeaderRecord("b", version="0.2.0", host="laptop")
    caplog.clear()
    world.lease["spec"] |= {"holderIdentity": "kube-scheduler", "renewTime": "2999-01-01T00:00:00Z"}
    await world.pass_time(5)
    assert "the leader is kube-scheduler" in caplog.messages
