"""The rights of every feature by itself, as the chart grants them, on an API server that enforces and records them.

For each feature the chart is rendered with that feature and nothing else that can be switched off. A scheduler with
just these roles does what the feature is for. Then no request was refused, the rights that came with the feature are
those of its rows in the table, and each was used; test_rights.py has all features together, with two replicas.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

from deploy import rights
from deploy.generate import CHART
from deploy.kustomize_files import template
from deploy.rights import LEASE_NAME, features
from deploy.tools import ToolsError, tools
from tests.deploy.test_rights_table import LEAST, configuration
from tests.e2e.api import Json
from tests.e2e.backends import Backend
from tests.e2e.conftest import SharedScheduler, check
from tests.e2e.real_backend import Real, gate_flags, why_not_real
from tests.e2e.rights_by_feature.chart_account import GROUP, NAMESPACE, Right, install, rights_in
from tests.e2e.rights_by_feature.queue_scenarios import PODS_OF_QUEUES, suspends
from tests.e2e.rights_by_feature.scenarios import (
    all_that_is_always_on,
    calls_hooks,
    calls_hooks_of_jobs,
    gives_devices,
    leads,
    measures,
    moves_for_a_waiting_pod,
    moves_where_it_costs_less,
    one_pod,
    preempts,
    serves_pod_groups,
    unwinds,
)
from tests.e2e.rights_by_feature.world import World
from tests.e2e.test_rights import FOR_FITS, NATIVE, WITHIN_OTHERS, define
from tests.effort import NO_HELM, NO_SERVER

NOTHING: Json = {**configuration(LEAST), "leaderElection.enabled": False}
"""Values of the chart with which all is off that can be."""
HOOKS = "poseidon-hooks"


@dataclass(frozen=True)
class Case:
    """values: what is switched on, as values of the chart. rows: the features of the table that come with that. do:
    what these are for. before: what is on in any case. account: that of the table."""

    name: str
    values: Json
    rows: tuple[str, ...]
    do: Callable[[World], None]
    before: Json = field(default_factory=dict)
    account: str = "scheduler"


NAMES = {
    "poseidon": "our own queues", "kueue": "queues of Kueue", "kai": "queues of KAI", "volcano": "queues of Volcano",
    "yunikorn": "queues of YuniKorn", "elasticquota": "queues of scheduler-plugins",
    "koordinator": "queues of Koordinator",
}  # fmt: skip
USAGE = (
    *({"config.usage.basis": value} for value in ("used", "larger")),
    *({"policy.name": value} for value in ("interference", "network-aware", "whare-map")),
    {"config.usage.interval": "1s"},
)
ALWAYS = tuple(each.name for each in features() if each.account == "scheduler" and not each.when)
CASES = (
    Case("always", {}, ALWAYS, all_that_is_always_on),
    *(
        Case(f"spreading {value}", {"config.placement.defaultSpreading": value}, ("default spreading",), one_pod)
        for value in ("system", "auto")
    ),
    Case("election", {"leaderElection.enabled": True}, ("holding the lease",), leads),
    Case("devices", {"config.devices.claims": "auto"}, ("devices",), gives_devices),
    Case("preemption", {"config.preemption.enabled": True}, ("preemption",), preempts),
    Case("unwinding", {"config.gangs.unwind": "evict"}, ("evictions",), unwinds),
    Case("moves for waiting", {"config.moves.when": "for-waiting"}, ("evictions",), moves_for_a_waiting_pod),
    Case("moves always", {"config.moves.when": "always"}, ("evictions",), moves_where_it_costs_less),
    *(Case("usage " + " ".join(each.values()), each, ("measured usage",), measures) for each in USAGE),
    Case("hooks", {"hooks.enabled": True}, ("hooks",), calls_hooks),
    Case(
        "hooks of jobs",
        {"jobsController.hooks.enabled": True},
        ("hooks",),
        calls_hooks_of_jobs,
        before={"jobsController.enabled": True},
        account="jobs",
    ),
    *(
        Case(
            f"queues {kind}",
            {"config.queues.kind": kind},
            (NAMES[kind], f"lease for {NAMES[kind]}", "writer of queues", *(("evictions",) if do.drains else ())),
            do,
        )
        for kind, do in PODS_OF_QUEUES.items()
    ),
    Case(
        "suspension",
        {"config.queues.suspendWorkloads": True},
        ("suspension", "preemption"),
        suspends,
        before={"config.queues.kind": "kueue"},
    ),
)


@pytest.fixture(scope="module", params=["real"])
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Real]:
    """One server for all cases, with the kinds of other projects."""
    if problem := why_not_real():
        pytest.skip(NO_SERVER + problem)
    assets, folder = Path(os.environ["KUBEBUILDER_ASSETS"]), tmp_path_factory.mktemp("rights")
    real = Real(assets, folder, authorization="RBAC", flags=gate_flags(assets), watched_group=GROUP)
    try:
        define(real)
        metadata = {"name": HOOKS}
        real.api("POST", "/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
        yield real
    finally:
        real.close()


@pytest.fixture(scope="module")
def helm() -> Path:
    try:
        return tools() / "helm"
    except ToolsError as error:
        pytest.skip(NO_HELM + str(error))


@pytest.fixture(scope="module")
def shared_scheduler(server: Real, tmp_path_factory: pytest.TempPathFactory) -> SharedScheduler:
    """Required by the fixtures of this folder; not used here."""
    return SharedScheduler(server, tmp_path_factory.mktemp("scheduler"))


@pytest.mark.parametrize("case", [pytest.param(each, id=each.name) for each in CASES])
def test_a_feature_needs_exactly_what_it_is_granted(
    server: Real, helm: Path, backend: Backend, tmp_path: Path, case: Case
) -> None:
    items = template(helm, CHART, {**NOTHING, **case.before, **case.values})
    added = rights_in(items, case.account)
    if case.values:
        without = rights_in(template(helm, CHART, {**NOTHING, **case.before}), case.account)
        assert without < added
        added -= without
    assert added == granted_by(case.rows, case.account)
    account = install(server, items, case.account, f"feature-{CASES.index(case)}", tmp_path)
    world = World(server, backend, account, tmp_path)
    try:
        case.do(world)
        check(world.started)
    finally:  # also after a timeout, whose most likely reason a refusal is
        for each in world.started:
            each.end()
        requests = account.requests(server)
        assert requests.refused == set(), "the rights do not allow what is needed"
    served = {each for each in added if serves_pod_groups(server) or each[1] != NATIVE}
    served = {each for each in served if each[1:4] not in WITHIN_OTHERS | FOR_FITS}
    assert sorted(each for each in served if not requests.use(each)) == [], "superfluous"


def granted_by(rows: tuple[str, ...], account: str) -> frozenset[Right]:
    """The rights of rows of the table."""
    places = {"": "", "lease": NAMESPACE, "hooks": HOOKS}
    return frozenset(
        (places[each.namespace], grant.group, grant.resource, grant.verb, name.replace(LEASE_NAME, "poseidon"))
        for each in features()
        if each.account == account and each.name in rows
        for grant in each.grants()
        for name in grant.names or ("",)
    )


def test_every_way_to_switch_a_feature_on_has_a_case() -> None:
    for each in features():
        cases = [case for case in CASES if case.account == each.account and each.name in case.rows]
        assert cases or (each.account == "jobs" and not each.when), each.name
        for way in each.when:
            for path, values in way.items():
                tried = {value for case in cases for key, value in case.values.items() if key in keys_of(path)}
                assert tried, f"no case of {each.name} sets {path}"
                assert {*values} - tried <= {"auto", rights.ANY}, f"{each.name}: {path}"


@cache
def keys_of(path: str) -> tuple[str, ...]:
    """The values of the chart that give a setting."""
    own = {
        "leaderElection.leaderElect": ("leaderElection.enabled",),
        "jobs.hooksFile": ("hooks.enabled", "jobsController.hooks.enabled"),
    }
    return own.get(path, (path, f"config.{path}"))
