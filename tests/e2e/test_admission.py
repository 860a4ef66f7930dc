"""The admission policies and the definition of Queue, as an API server carries them out."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator

import pytest
import yaml

from deploy.generate import CHART, KUSTOMIZE
from tests.deploy.admission_cases import SERVED, WRONG, Json, a_pod
from tests.e2e.api import PATIENCE, ApiError
from tests.e2e.backends import Backend, home_of
from tests.e2e.conftest import REAL
from tests.e2e.definitions import remove_definitions

_GROUP = "/apis/admissionregistration.k8s.io/v1"
_KINDS = ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding")
_DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
_PLURALS = ("validatingadmissionpolicybindings", "validatingadmissionpolicies")


def refusal(backend: Backend, path: str, item: Json, method: str = "POST") -> str:
    """What the server says; empty: it accepts the object. Raises ApiError if it says something else."""
    try:
        backend.api(method, f"{path}?dryRun=All", item)
    except ApiError as error:
        if error.code not in (403, 422):
            raise
        return str(yaml.safe_load(error.body)["message"])
    return ""


@pytest.fixture
def older(backend: Backend) -> Iterator[Json]:
    """A Deployment with a misspelt key, from before the policies."""
    yield backend.api("POST", _DEPLOYMENTS, SERVED["Deployment"].item)
    backend.delete(_DEPLOYMENTS, "a")


@pytest.fixture
def guarded(backend: Backend) -> Iterator[Backend]:
    """With the policies in force, and Volcano's Jobs defined."""
    items = [item for item in yaml.safe_load_all((KUSTOMIZE / "base" / "poseidon.yaml").read_text()) if item]
    policies = [item for item in items if item["kind"] in _KINDS]
    assert len(policies) == 8
    definitions = list(yaml.safe_load_all((CHART / "definitions" / "jobs.yaml").read_text()))
    for item in definitions:
        backend.api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", item)
    for item in policies:
        plural = _PLURALS[item["kind"] == _KINDS[0]]
        backend.api("POST", f"{_GROUP}/{plural}", item)
    try:
        end = time.monotonic() + PATIENCE
        for name in ("two are alike", "Volcano", "namespace, value"):  # one of each policy
            while not _answer(backend, SERVED[name].item):
                assert time.monotonic() < end, f"the policy of {name!r} is not in force"
                time.sleep(0.05)  # a policy does not say when it is
        yield backend
    finally:
        for plural in _PLURALS:
            backend.delete(f"{_GROUP}/{plural}", *{item["metadata"]["name"] for item in policies})
        remove_definitions(backend, *(item["metadata"]["name"] for item in definitions))


def _answer(backend: Backend, item: Json) -> str:
    item = copy.deepcopy(item)
    try:
        return refusal(backend, home_of(item), item)
    except ApiError:
        return ""  # its definition is not served yet


def _served(backend: Backend, path: str) -> bool:
    try:
        return bool(backend.api("GET", path))
    except ApiError:
        return False


@REAL
def test_what_is_wrong_is_refused_with_its_path_and_the_remedy(guarded: Backend) -> None:
    wrong = {}
    for name, case in SERVED.items():
        found = refusal(guarded, home_of(case.item), case.item)
        if any(part not in found for part in case.message) if case.message else found:
            wrong[name] = found
    assert wrong == {}
    assert "ValidatingAdmissionPolicy 'poseidon-pods'" in refusal(guarded, home_of(a_pod(WRONG)), a_pod(WRONG))


@REAL
def test_what_was_wrong_before_may_stay(older: Json, guarded: Backend) -> None:
    path = f"{_DEPLOYMENTS}/{older['metadata']['name']}"
    older["spec"]["replicas"] = 5
    assert refusal(guarded, path, older, "PUT") == ""
    older["spec"]["template"]["metadata"]["annotations"]["poseidon.io/preempt"] = "never"
    message = refusal(guarded, path, older, "PUT")
    assert 'metadata.annotations[poseidon.io/preempt]: "never" is not valid; give true or false' in message
    assert "gnag" not in message


@REAL
def test_the_definition_of_queues_refuses_what_closes_a_queue(backend: Backend) -> None:
    (definition,) = yaml.safe_load_all((CHART / "definitions" / "queues.yaml").read_text())
    backend.api("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition)
    path = "/apis/poseidon.io/v1/queues"

    def queue(**spec: object) -> Json:
        return {"apiVersion": "poseidon.io/v1", "kind": "Queue", "metadata": {"name": "q"}, "spec": spec}

    right = queue(guarantee={"cpu": 1, "memory": "1Gi"}, limit={"cpu": "1000m"})
    try:
        end = time.monotonic() + PATIENCE
        while not _served(backend, path):
            assert time.monotonic() < end
            time.sleep(0.05)  # discovery cannot be watched
        assert refusal(backend, path, right) == ""
        message = refusal(backend, path, queue(guarantee={"cpu": 2}, limit={"cpu": "1500m"}))
        assert "spec.limit: Invalid value" in message
        assert "less than the guarantee" in message
        assert "remove the field" in refusal(backend, path, queue(guarantee={"cpu": "2"}, lendingLimit={"cpu": 1}))
        assert "cannot be its own parent" in refusal(backend, path, queue(parent="q"))
        assert 'Unsupported value: "lifo"' in refusal(backend, path, queue(order="lifo"))
        assert "should match" in refusal(backend, path, queue(guarantee={"cpu": "two"}))
        assert "should match" in refusal(backend, path, queue(preemptionNotice="soon"))
    finally:
        remove_definitions(backend, "queues.poseidon.io")
