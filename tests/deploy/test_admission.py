"""The admission policies, as an evaluator of CEL carries them out; e2e/test_admission.py has an API server."""

from __future__ import annotations

import copy

import pytest
import yaml

from deploy.admission import policies
from deploy.generate import CHART
from tests.deploy.admission_cases import (
    CUSTOM,
    SERVED,
    WHY,
    WRONG,
    Case,
    Json,
    a_job,
    a_pod,
    a_template,
    metadata,
    volcano_job,
)
from tests.deploy.cel import value_of, verdict
from tests.deploy.conftest import Render, of_kind

POLICIES: dict[str, Json] = {each["name"]: each for each in policies()}
NAMES: dict[str, list[str]] = value_of(
    next(each["expression"] for each in POLICIES["owners"]["variables"] if each["name"] == "names"), {}
)


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in (SERVED | CUSTOM).items()])
def test_what_is_wrong_is_refused_with_its_path_and_the_remedy(case: Case):
    found = verdict(POLICIES[case.policy], case.item)
    if case.message:
        assert [part for part in case.message if part not in found] == [], found
    else:
        assert found == ""


def test_the_other_schedulers_of_the_release_count_too():
    pod = a_pod(WRONG, scheduler="default-scheduler")
    assert verdict(POLICIES["pods"], pod, schedulers=("poseidon", "default-scheduler"))
    template = a_template(WRONG)
    del template["spec"]["schedulerName"]  # the API server fills it in for kinds of its own
    job = {
        "metadata": metadata(),
        "spec": {"replicatedJobs": [{"name": "w", "template": {"spec": {"template": template}}}]},
    }
    assert verdict(POLICIES["owners"], job) == ""
    assert WHY in verdict(POLICIES["owners"], job, schedulers=("default-scheduler",))


@pytest.mark.parametrize("policy", ["pods", "owners"])
def test_an_update_is_refused_for_what_it_makes_wrong_alone(policy: str):
    """Else a controller could not go on with an object that was there before the policy."""

    def item(**annotations: str) -> Json:
        keys = {f"poseidon.io/{key.replace('_', '-')}": value for key, value in annotations.items()}
        return a_pod(keys) if policy == "pods" else a_job(of_template=keys)

    message = verdict(POLICIES[policy], item(gnag="2", colour="red"), item(gnag="2"))
    assert "poseidon.io/colour" in message
    assert "poseidon.io/gnag" not in message
    assert verdict(POLICIES[policy], item(gnag="3", gang="x"), item(gnag="2", gang="x")) == ""
    assert verdict(POLICIES[policy], item(gang="x"), item(gang="y")) != ""
    assert verdict(POLICIES[policy], item(gang="2"), item(gnag="2")) == ""


def test_pods_of_controllers_are_checked_when_somebody_changes_them():
    of_job = a_pod(WRONG)
    of_job["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j", "controller": True}]
    assert verdict(POLICIES["pods"], of_job) == ""
    before = copy.deepcopy(of_job)
    before["metadata"]["annotations"] = {}
    assert verdict(POLICIES["pods"], of_job, before) == f"metadata.annotations{WHY}"
    of_job["metadata"]["ownerReferences"] = [{"kind": "Job", "name": "j"}]  # an owner that does not control it
    assert verdict(POLICIES["pods"], of_job) == f"metadata.annotations{WHY}"


def test_nodes_are_checked_when_somebody_changes_them():
    rules = POLICIES["nodes"]["matchConstraints"]["resourceRules"]
    assert [(each["resources"], each["operations"]) for each in rules] == [(["nodes"], ["UPDATE"])]
    node = {"metadata": metadata({"poseidon.io/ingress-bandwidth": "10Gb"}, {"poseidon.io/egress-bandwith": "1G"})}
    message = verdict(POLICIES["nodes"], node, {"metadata": metadata()})
    assert '[poseidon.io/ingress-bandwidth]: "10Gb" is not valid; give bits per second, like 100M' in message
    assert "did you mean poseidon.io/egress-bandwidth?" in message


@pytest.mark.parametrize("key", NAMES["owner annotation"])
def test_each_key_is_suggested_for_what_is_nearly_it(key: str):
    name = key.rpartition("/")[2]
    at = len(name) // 2
    meant = []
    for wrong in (
        name[:at] + name[at + 1 :],
        name[:at] + "x" + name[at:],
        name[:at] + "x" + name[at + 1 :],
        f"{name}s",
    ):
        message = verdict(POLICIES["owners"], a_job({f"poseidon.io/{wrong}": "1"}))
        meant.append(key in message.partition("did you mean")[2])
    assert meant == [True] * 4


def test_the_chart_has_what_is_generated():
    assert yaml.safe_load((CHART / "admission.yaml").read_text())["policies"] == policies()


@pytest.mark.parametrize(
    ("values", "actions", "failure"),
    [
        ({}, ["Deny"], "Ignore"),
        ({"admission.action": "warn", "admission.failurePolicy": "Fail"}, ["Warn", "Audit"], "Fail"),
    ],
    ids=["defaults", "warn"],
)
def test_values_choose_what_follows(render: Render, values: dict[str, object], actions: list[str], failure: str):
    items = render({**values, "schedulerName": ["poseidon", "batch"]})
    found = of_kind(items, "ValidatingAdmissionPolicy")
    assert [each["metadata"]["name"] for each in found] == [f"poseidon-{name}" for name in POLICIES]
    assert {each["spec"]["failurePolicy"] for each in found} == {failure}
    rendered = found[0]["spec"]["variables"]
    assert value_of(rendered[0]["expression"], {}) == ["poseidon", "batch"]
    assert rendered[1:] == POLICIES["pods"]["variables"]
    bindings = of_kind(items, "ValidatingAdmissionPolicyBinding")
    assert [each["spec"]["policyName"] for each in bindings] == [each["metadata"]["name"] for each in found]
    assert {tuple(each["spec"]["validationActions"]) for each in bindings} == {tuple(actions)}


def test_they_can_be_left_out(render: Render):
    assert not of_kind(render({"admission.enabled": False}), "ValidatingAdmissionPolicy")


def test_a_job_of_volcano_without_tasks_is_no_error():
    assert verdict(POLICIES["owners"], volcano_job({"schedulerName": "poseidon"})) == ""
