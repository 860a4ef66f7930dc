import pytest

from benchmarks.demo.evidence import samples
from benchmarks.demo.progress import percentiles
from benchmarks.demo.summary import balance, quantile, reasons, utilisation
from tests.benchmarks.demo.builders import make_evidence, make_node, make_pod


def test_waiting_pods_are_grouped_by_what_their_conditions_say():
    pods = [make_pod(f"w{i}", cpu="100") for i in range(3)]
    pods[2]["status"]["conditions"][0]["message"] = "0/1 nodes are available: 1 Too many pods."
    without = make_pod("s", reason="")
    found = reasons([*pods, without])
    assert [(one["pods"], one["message"]) for one in found] == [
        (2, "0/1 nodes are available"),
        (1, "no condition"),
        (1, "0/1 nodes are available: 1 Too many pods."),
    ]
    assert found[0]["example"] == "default/w0"


def test_utilisation_has_the_current_and_the_peak_share():
    # 8 cpu: a holds 1, b held 6 before it ended -> 1/8 now, 7/8 at most
    pods = [make_pod("a", "n1", cpu="1"), make_pod("b", "n2", cpu="6", phase="Succeeded")]
    entries = [("bind", "a", "n1"), ("bind", "b", "n2"), ("finish", "b", "n2")]
    evidence = make_evidence(pods, [make_node("n1", cpu="2"), make_node("n2", cpu="6")], entries)
    use = utilisation(evidence)["cpu"]
    assert (use["offered"], use["requested"], use["share"], use["peak_share"]) == (8000, 1000, 1 / 8, 7 / 8)


def test_balance_excludes_tainted_nodes():
    taint = {"key": "gpu", "effect": "NoSchedule"}
    nodes = [make_node("n1"), make_node("n2"), make_node("gpu", taints=[taint])]
    even = balance(make_evidence([make_pod("a", "n1", cpu="2")], nodes))
    assert (even["nodes"], even["cpu_min"], even["cpu_max"], even["cpu_mean"]) == (2, 0.0, 0.5, 0.25)


def test_quantiles_of_a_histogram_are_interpolated():
    # 10 values: 4 up to 1 s, 8 up to 2 s, 10 in all -> the 5th is a quarter into (1, 2]
    text = 'h_bucket{le="1.0"} 4\nh_bucket{le="2.0"} 8\nh_bucket{le="+Inf"} 10\nother_bucket{le="1.0"} 99\n'
    metrics = samples("# HELP h x\n" + text)
    assert quantile(metrics, "h", 0.5) == pytest.approx(1.25)
    assert quantile(metrics, "h", 1.0) == 2.0
    assert quantile(metrics, "absent", 0.5) == 0.0


def test_percentiles_are_nearest_rank():
    values = [float(i) for i in range(1, 101)]
    assert percentiles(values) == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "max": 100.0}
    assert percentiles([7.0]) == {"p50": 7.0, "p90": 7.0, "p99": 7.0, "max": 7.0}
    assert percentiles([]) == {}
