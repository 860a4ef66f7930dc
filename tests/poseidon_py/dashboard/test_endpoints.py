"""What the page's endpoints answer: to the own machine all, to others what they may list."""

import pytest

from poseidon_py.dashboard.work import ListQuery, page
from tests.poseidon_py.dashboard.seen import API, names_in

MI = 2**20
GI = 2**30


async def test_the_overview_sums_what_is_used_and_says_why_pods_wait(seen):
    found = await seen.ask("overview")
    assert found["pods"] == {"placed": 2, "pending": 2, "leaving": 0, "hidden": 0}
    use = {each["resource"]: (each["used"], each["allocatable"], each["requested"]) for each in found["resources"]}
    # 3 and 1 of 8 and 4 cores; 6 and 9 are waited for
    assert use["cpu"] == (4000, 12000, 15000)
    assert use["memory"] == (6 * GI, 32 * GI, 2 * GI)
    assert use["pods"] == (2, 20, 2)
    (waiting,) = found["pending"]
    assert (waiting["waits"], waiting["action"], waiting["pods"]) == ("no-capacity", "wait", 2)
    assert waiting["reasons"] == [
        {"message": "0/2 nodes are available: 2 Insufficient cpu.", "pods": 2, "example": "blue/four"}
    ]
    by_zone = await seen.ask("overview?label=zone")
    assert [(each["pool"], each["resources"]["cpu"]) for each in by_zone["pools"]["pools"]] == [
        ("a", [3000, 8000]),
        ("b", [1000, 4000]),
    ]
    assert "disk" not in by_zone["pools"]["labels"]  # all nodes have the same: it groups nothing


async def test_lists_are_filtered_and_cut_on_the_server(seen):
    for number in range(30):
        seen.put(f"many-{number:02}", namespace="red")
    found = await seen.ask("pods?text=MANY&limit=10&offset=25")
    assert (found["total"], found["offset"]) == (30, 25)
    assert len(found["items"]) == 5
    assert (await seen.ask("pods?namespace=blue"))["total"] == 2
    assert [each["pod"] for each in (await seen.ask("pods?node=n2"))["items"]] == ["blue/three"]
    waiting = await seen.ask("pods?waits=no-capacity&state=waiting")
    assert {each["pod"] for each in waiting["items"]} == {"red/two", "blue/four"}
    jobs = await seen.ask("jobs?text=red/j")
    (job,) = jobs["items"]
    assert (job["name"], job["pods"], job["waits"]) == (
        "red/j",
        {"Pending": 1, "Running": 1},
        "no node that suits it has enough free",
    )


def test_pages_of_tiers_are_those_of_all_rows_in_order():
    tiers: tuple[list[int], ...] = ([3, 1, 2], [], [9, 8], [5])
    rows = [3, 2, 1, 9, 8, 5]
    for offset in range(8):
        for limit in range(1, 8):
            chosen = ListQuery(offset=offset, limit=limit)
            assert page(tiers, chosen, lambda row: row) == rows[offset : offset + limit]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("pods?limit=501", 400, "the parameter limit: is '501'; give a number from 1 to 500"),
        ("pods?colour=red", 400, "the parameter 'colour': is unknown"),
        ("history?span=year", 400, "give hour or week"),
        ("nodes?shape=cpu", 400, "give RESOURCE=QUANTITY"),
        ("nodes?shape=cpu=x", 400, "has a wrong amount of cpu: 'x' is not a quantity"),
        ("pod?name=nothing", 400, "give NAMESPACE/NAME"),
        ("pod?name=red/nothing", 404, "red/nothing not found"),
        ("job?name=red/nothing", 404, "job nothing not found"),
        ("gang?name=red/nothing", 404, "gang red/nothing not found"),
        ("queue?name=nothing", 404, "queue nothing not found"),
        ("node?name=nothing", 404, "node nothing not found"),
        ("network", 404, "no network was kept"),
    ],
)
async def test_errors_name_what_is_wrong(seen, path, status, says):
    found, body, _ = await seen.get(f"{API}/{path}")
    assert (found, says in body["error"]) == (status, True), body


async def test_nodes_are_grouped_and_count_what_fits(seen):
    found = await seen.ask("nodes?label=zone&shape=cpu=2,memory=1Gi")
    # free: 5 cores on n1 and 3 on n2, so 2 and 1 pods of 2 cores; 8 cores together would take 4
    assert found["columns"]["name"] == ["n1", "n2"]
    assert found["columns"]["fits"] == [2, 1]
    shape = found["shape"]
    assert (shape["fits"], shape["nodes"], shape["pooled"], shape["fragmentation"]) == (3, 2, 4, 0.25)
    assert [(each["name"], each["fits"], each["used"]) for each in found["groups"]] == [("a", 2, 3000), ("b", 1, 1000)]


async def test_others_get_nothing_without_a_token_but_the_files(seen):
    assert (await seen.get("/dashboard/", " "))[0] == 200
    assert (await seen.get("/dashboard/plotly.min.js", " "))[0] == 200
    for path in ("overview", "stream", "pods"):
        status, body, _ = await seen.get(f"{API}/{path}", " ")
        assert status == 401, body
        assert (await seen.get(f"{API}/{path}", "stranger"))[0] == 403


LISTS = (
    "overview",
    "jobs",
    "gangs",
    "pods",
    "queues",
    "queue?name=q",
    "network",
    "rounds",
    "nodes",
    "history",
    "pod?name=red/two",
    "job?name=red/j",
    "gang?name=red/first",
)


async def test_tenants_see_the_namespaces_in_which_they_may_list_pods_and_sums_of_others(seen):
    gang = {"namespace": "red", "state": "Pending", "age_seconds": 1, "queue": "q", "problem": ""}
    seen.gang_body = {
        "gangs": [
            gang | {"name": "red/first", "why": "waits behind blue/second"},
            gang | {"name": "blue/second", "namespace": "blue", "why": ""},
        ]
    }
    queue = {"name": "q", "why": "after blue/four", "problems": [], "resources": [], "running": 2, "pending": 2}
    local = [{"name": "red/local"}, {"name": "blue/local"}]
    waiting = [{"pod": "red/two", "why": "behind blue/four"}, {"pod": "blue/four", "why": ""}]
    users: dict[str, object] = {"blue/user": {}}
    seen.queue_body = seen.queue_body | {
        "problems": {"LocalQueue/blue/local": ["no queue of blue/local"], "ClusterQueue/q": ["see blue/local"]},
        "queues": [queue | {"local_queues": local, "waiting": waiting, "users": users}],
    }
    vertices = [
        {"kind": "tasks", "label": "blue/four", "names": ["blue/four", "red/two"]},
        {"kind": "class", "label": "blue/four", "names": ["blue/four"]},
    ]
    seen.network_body = {"rounds": [], "round": 1, "networks": [{"vertices": vertices, "arcs": []}]}
    seen.conditions["uid-two"] = "0/2 nodes are available; preempting blue/three does not help"
    seen.explained = {"story": ["evicted for blue/three"], "message": "behind blue/four"}
    for path in LISTS:
        for user, sees in (("admin", {"red", "blue"}), ("red", {"red"})):
            found = names_in(await seen.ask(path, user))
            assert {name.partition("/")[0] for name in found} <= sees, (path, user, found)
    own = await seen.ask("pods", "red")
    assert ([each["pod"] for each in own["items"]], own["hidden"], own["total"]) == (["red/two", "red/one"], 2, 2)
    sums = await seen.ask("overview", "red")
    assert (sums["pods"]["pending"], sums["pods"]["hidden"]) == (2, 2)
    assert [each["pods"] for each in sums["pending"]] == [2]
    assert [each["pods"] for each in sums["pending"][0]["reasons"]] == [1]
    for path in ("pod?name=blue/four", "job?name=blue/four", "gang?name=blue/second", "network?pod=blue/four"):
        status, body, _ = await seen.get(f"{API}/{path}", "red")
        assert (status, "you may not list the pods of namespace blue" in body["error"]) == (403, True)
    status, body, _ = await seen.get(f"{API}/gang?name=blue/nothing", "blue")
    assert (status, names_in(body)) == (404, {"blue/nothing"})  # names that are near are not told


async def test_namespaces_are_asked_for_once_and_all_of_them_first(seen):
    for _ in range(3):
        await seen.ask("pods", "red")
        await seen.ask("pods", "admin")
    asked = [(each["user"], each["resourceAttributes"].get("namespace", "")) for each in seen.reviews.asked
             if "resourceAttributes" in each]  # fmt: skip
    assert sorted(asked) == [("admin", ""), ("red", ""), ("red", "blue"), ("red", "red")]
