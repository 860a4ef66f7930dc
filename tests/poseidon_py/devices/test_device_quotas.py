"""What claims count as in quotas: amounts, and what is refused as in Kueue (pkg/dra/claims.go of 0.20)."""

import pytest

from poseidon_py.devices.device_quotas import DeviceQuotas, NoQuotaError, quotas_by_class
from poseidon_py.devices.device_requests import Alternative, ClaimRequests, Request, Selection

MAPPED = DeviceQuotas({"large": "gpus", "small": "gpus", "nic": "nics"}, {"part": "by counters"}, exclusive=True)
BY_CLASS = quotas_by_class(["cpu", "deviceclass.resource.kubernetes.io/large"])


def asking(name, class_name, number=1, admin=False, label=""):
    return Request(name, (Alternative(label or name, class_name, Selection(()), number, admin, ()),))


def claim(*requests):
    return ClaimRequests(requests)


def first_of(name, *classes):
    options = (Alternative(f"{name}/{each}", each, Selection(()), 2, False, ()) for each in classes)
    return Request(name, tuple(options))


def test_classes_with_one_resource_add_up_and_administrative_access_counts_as_nothing():
    found = MAPPED.amounts(
        claim(asking("a", "large", 2), asking("b", "small"), asking("c", "nic"), asking("d", "large", admin=True)), {}
    )
    assert found == {"gpus": 3, "nics": 1}
    assert BY_CLASS.amounts(claim(asking("a", "large", 2), asking("b", "small")), {}) == {
        "deviceclass.resource.kubernetes.io/large": 2
    }


def test_what_runs_counts_as_what_it_has():
    asked = claim(asking("all", "large", 0), first_of("r", "small", "nic"))
    assert MAPPED.amounts(asked, {}) == {}
    assert MAPPED.amounts(asked, {"all": 3, "r/nic": 2}) == {"gpus": 3, "nics": 2}


@pytest.mark.parametrize(
    ("request_", "mapped", "by_class"),
    [
        (asking("r", "large"), "", ""),
        (asking("r", "large", 0), "All has no quota", "All has no quota"),
        (asking("r", "large", label="r/one"), "firstAvailable has no quota", "firstAvailable has no quota"),
        (first_of("r", "fpga", "large"), "device class fpga has no quota; name it", "firstAvailable has no quota"),
        (first_of("r", "small", "nic"), "firstAvailable has no quota", ""),
        (asking("r", "fpga"), "device class fpga has no quota; name it", ""),
        (asking("r", "fpga", 0), "device class fpga has no quota; name it", ""),
        (asking("r", "fpga", admin=True), "", ""),
        (asking("r", "large", 0, admin=True), "", ""),
        (asking("r", "part"), "device class part has no quota: by counters", ""),
    ],
)
def test_what_cannot_be_counted_is_refused_where_it_counts(request_, mapped, by_class):
    for quotas, why in ((MAPPED, mapped), (BY_CLASS, by_class)):
        if not why:
            quotas.check(claim(request_), "c")
            continue
        with pytest.raises(NoQuotaError, match=f"claim c, request .*{why}"):
            quotas.check(claim(request_), "c")


def test_extended_resources_count_once():
    assert MAPPED.counts_as("example.com/gpu", "large") == "gpus"
    assert MAPPED.counts_as("gpus", "large") == ""
    assert MAPPED.counts_as("deviceclass.resource.kubernetes.io/large", "large") == ""
    assert MAPPED.counts_as("example.com/fpga", "fpga") == ""
    assert BY_CLASS.counts_as("example.com/gpu", "large") == ""
    assert MAPPED.replaced({"large": "example.com/gpu", "nic": "nics", "fpga": "example.com/fpga"}) == {
        "example.com/gpu"
    }
    assert BY_CLASS.replaced({"large": "example.com/gpu"}) == set()
