"""Flags and the configuration file."""

from pathlib import Path

import pytest

from poseidon_py.config import loading
from poseidon_py.config.loading import OptionError
from poseidon_py.config.settings import Settings


def test_nothing_given_means_the_defaults():
    assert loading.settings({}, {"policy": None, "scheduler_name": ()}) == Settings()


def test_flags_win_over_the_file_and_the_file_over_the_defaults(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "scheduler-name: [a, b]\nbatch_window: 1\nlog-level: debug\nkubeconfig: /k\n"
        "policy-option: {x: 1}\nleader-elect: true\n"
    )
    got = loading.settings(loading.read_file(file), {"log_level": "error", "policy": None})
    assert got.scheduler_name == ("a", "b")
    assert got.batch_window == 1.0
    assert got.log_level == "error"
    assert got.kubeconfig == Path("/k")
    assert got.policy_option == ("x=1",)
    assert got.leader_elect is True


@pytest.mark.parametrize("key", ["policyOptions", "policy-options", "policy-option", "policy_option"])
def test_options_of_the_policy_are_a_mapping_in_the_file(tmp_path, key):
    file = tmp_path / "c.yaml"
    file.write_text(f"policy: p\n{key}:\n  by: requested\n  seed: 3\n  weight: 0.5\n  strict: true\n")
    assert loading.settings(loading.read_file(file), {}).policy_option == (
        "by=requested",
        "seed=3",
        "weight=0.5",
        "strict=true",
    )
    flags = {"policy_option": ("by=tasks",)}
    assert loading.settings(loading.read_file(file), flags).policy_option == ("by=tasks",)


def test_an_empty_file_says_nothing(tmp_path):
    (tmp_path / "c").write_text("")
    assert loading.read_file(tmp_path / "c") == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bind-concurency: 5", "did you mean 'bind-concurrency'"),
        ("zzz: 5", "unknown key 'zzz'"),
        ("bind-concurrency: many", "bind-concurrency must be a int, not 'many'"),
        ("bind-concurrency: true", "bind-concurrency must be a int"),
        ("batch-window: x", "batch-window must be a number"),
        ("scheduler-name: {a: {b: c}}", "scheduler-name must be a list"),
        ("bind-concurrency: 0", "bind-concurrency must be 1 or more"),
        ("policyOptions: {seed: [1]}", "policyOptions.seed is [1]; give a text, a number, true or false"),
        ("policyOptions: {seed: }", "policyOptions.seed is None; give a text, a number, true or false"),
        ("policyOptions: {seed: 1}\npolicy-option: [a=1]", "says policy-option a second time; keep one of the two"),
        ("scheduler-name: ['']", "scheduler-name must not be empty"),
        ("[1, 2]", "not a mapping"),
        ("a: [", "not YAML"),
        ("renew-deadline: 20", "lease-duration > renew-deadline"),
        ("log-level: loud", "one of debug"),
        ("health-port: 70000", "health-port must be"),
        ("policy-option: [x]", "not of the form K=V"),
        ("firmament-address: h:1\npolicy: p", "belongs to the flow service"),
        ("firmament-ca: /x", "needs firmament-address"),
        ("firmament-address: h:1\nfirmament-cert: /x\nfirmament-key: /y", "need firmament-ca"),
        ("firmament-address: h:1\nfirmament-ca: /x\nfirmament-cert: /x", "go together"),
        ("firmament-address: h:1\nfirmament-ca: /not/there", "there is no file /not/there; correct firmament-ca"),
        (
            f"firmament-address: h:1\nfirmament-ca: {__file__}",
            f"firmament-ca {__file__} cannot be used (no certificate",
        ),
        ("firmament-address: h:1\nusage-samples: 5", "belong to the flow service"),
        ("usage: everything", "usage must be one of requests, used, larger, not 'everything'"),
        ("usage-interval: 0.5", "usage-interval must be off, or seconds from 1 to 86400, not '0.5'"),
        ("usage-interval: often", "not 'often'"),
        ("usage-interval: true", "usage-interval must be"),
        ("prometheus-queries: {pod-cpu: up}", "prometheus-queries needs prometheus-url"),
        ("prometheus-url: prometheus:9090", "prometheus-url must be like http://HOST:PORT"),
        ("prometheus-url: http://h:port", "prometheus-url must be like http://HOST:PORT"),
        ("prometheus-url: http://h\nprometheus-queries: {pods-cpu: up}", "unknown key 'pods-cpu'; there are: pod-cpu"),
        ("prometheus-url: http://h\nprometheus-queries: {pod-cpu: 5}", "pod-cpu must be a query"),
        ("prometheus-url: http://h\nprometheus-queries: up", "must be a mapping"),
        ("prometheus-url: http://h\nprometheus-ca: /not/there", "there is no file /not/there"),
        (f"prometheus-url: http://h\nprometheus-ca: {__file__}", "give a readable file of PEM certificates"),
        ("batch-window: .nan", "batch-window must be a finite number, not nan"),
        ("lease-duration: .inf", "lease-duration must be a finite number, not inf"),
        (f"event-rate: {10**400}", "event-rate must be a finite number"),
        ("usage-stale: .nan", "usage-stale must be a finite number"),
        ("startup-timeout: 0", "startup-timeout must be more than 0 seconds, not 0.0"),
        ("startup-timeout: -1", "startup-timeout must be more than 0 seconds"),
        ("startup-timeout: .nan", "startup-timeout must be a finite number"),
        ("rpc-timeout: 0", "rpc-timeout must be more than 0 seconds, not 0.0"),
        ("bind-timeout: 0", "bind-timeout must be more than 0"),
        ("volume-timeout: -1", "volume-timeout must be more than 0"),
        ("watch-timeout: 0", "watch-timeout must be more than 0"),
        ("watch-silence: 0", "watch-silence must be more than 0"),
        ("bind-patience: -1", "bind-patience must be 0 or more"),
        ("gang-reserve-after: later", "gang-reserve-after must be never, or seconds from 0 on, not 'later'"),
        ("gang-reserve-after: -1", "gang-reserve-after must be never, or seconds from 0 on, not '-1'"),
        ("gang-reserve-after: .nan", "gang-reserve-after must be never, or seconds from 0 on"),
        ("gang-reserve-after: true", "gang-reserve-after must be a str, not True"),
        ("gang-reserve-after: 60\nfirmament-address: h:1", "gang-reserve-after belongs to the flow service"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, text, says):
    (tmp_path / "c").write_text(text)
    with pytest.raises(OptionError, match=r".+") as caught:
        loading.settings(loading.read_file(tmp_path / "c"), {})
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "c").write_bytes(b"policy: caf\xe9")
    with pytest.raises(OptionError, match="is not text in UTF-8; save --config as YAML in UTF-8"):
        loading.read_file(tmp_path / "c")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(OptionError, match="No such file"):
        loading.read_file(tmp_path / "none")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        pytest.param("{}", None, id="not-given"),
        pytest.param("usage-interval: off", 0.0, id="off-which-yaml-takes-for-false"),
        pytest.param("usage-interval: 'off'", 0.0, id="off"),
        pytest.param("usage-interval: 15", 15.0, id="whole"),
        pytest.param("usage-interval: 2.5", 2.5, id="broken"),
    ],
)
def test_how_often_usage_is_polled(tmp_path, text, seconds):
    (tmp_path / "c").write_text(text)
    assert loading.usage_interval(loading.settings(loading.read_file(tmp_path / "c"), {})) == seconds


@pytest.mark.parametrize(("text", "told"), [("900", "900"), ("0", "0"), ("2.5", "2.5"), ("never", "never")])
def test_when_the_own_flow_service_is_to_keep_room_for_gangs(tmp_path, text, told):
    (tmp_path / "c").write_text(f"gang-reserve-after: {text}")
    given = loading.settings(loading.read_file(tmp_path / "c"), {})
    assert loading.service_arguments(given) == ["--reserve-after", told]


def test_what_the_own_flow_service_is_to_know_of_usage():
    assert loading.service_arguments(Settings(firmament_args=("-x",))) == ["-x"]
    given = Settings(usage="larger", usage_samples=5, usage_half_life=30.0, usage_stale=60.0)
    assert loading.service_arguments(given) == [
        *("--usage", "larger"),
        *("--usage-samples", "5"),
        *("--usage-half-life", "30.0"),
        *("--usage-stale", "60.0"),
    ]


@pytest.mark.parametrize("content", ["policy: " + "[" * 5000, "policy: 2026-13-45"], ids=["nested", "no date"])
def test_a_file_that_the_yaml_parser_chokes_on_is_named(tmp_path, content):
    (tmp_path / "c").write_text(content)
    with pytest.raises(OptionError, match="is not YAML"):
        loading.read_file(tmp_path / "c")
