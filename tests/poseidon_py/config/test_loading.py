"""Flags and the configuration file."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from poseidon_py.config import loading
from poseidon_py.config.configuration_file import read_file
from poseidon_py.config.conversion import OptionError
from poseidon_py.config.settings import Settings
from poseidon_py.state.gangs.owner_kinds import OWNER_KINDS
from poseidon_py.util.yaml_file import parse_yaml, read_yaml, yaml_text


def test_without_options_the_defaults_apply():
    assert loading.settings({}, {"policy": None, "scheduler_name": ()}) == Settings()


def test_flags_override_the_file_and_the_file_overrides_the_defaults(tmp_path):
    file = tmp_path / "c.yaml"
    file.write_text(
        "scheduler-name: [a, b]\nbatch_window: 1\nlog-level: debug\nkubeconfig: /k\n"
        "policy-option: {x: 1}\nleader-elect: true\n"
    )
    got = loading.settings(read_file(file), {"log_level": "error", "policy": None})
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
    assert loading.settings(read_file(file), {}).policy_option == (
        "by=requested",
        "seed=3",
        "weight=0.5",
        "strict=true",
    )
    flags = {"policy_option": ("by=tasks",)}
    assert loading.settings(read_file(file), flags).policy_option == ("by=tasks",)


def test_an_empty_file_changes_no_setting(tmp_path):
    (tmp_path / "c").write_text("")
    assert read_file(tmp_path / "c") == {}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("bind-concurency: 5", "did you mean 'bind-concurrency'"),
        ("zzz: 5", "unknown key 'zzz'"),
        ("bind-concurrency: many", "bind-concurrency in FILE is 'many'; give a whole number of 1 or more"),
        ("bind-concurrency: true", "bind-concurrency in FILE is True; give a whole number of 1 or more"),
        ("bind-concurrency: ", "bind-concurrency in FILE is empty; give a whole number of 1 or more"),
        ("bind-concurrency: [1]", "bind-concurrency in FILE is [1]; give a whole number of 1 or more"),
        ("bind-concurrency: 0", "bind-concurrency in FILE is 0; give a whole number of 1 or more"),
        (
            "batch-window: x",
            "batch-window in FILE is 'x'; give a number of seconds of 0 or more, or a duration such as 15s",
        ),
        (
            "scheduler-name: {a: {b: c}}",
            "scheduler-name in FILE is [{'a': {'b': 'c'}}]; give a text or a list of texts",
        ),
        ("kubeconfig: 5", "kubeconfig in FILE is 5; give a path"),
        ("leader-elect: maybe", "leader-elect in FILE is 'maybe'; give true or false"),
        ("lease-name: [a]", "lease-name in FILE is ['a']; give a text"),
        ("added-node-affinity: 5", "added-node-affinity in FILE is 5; give a mapping"),
        ("added-node-affinity: '{'", "added-node-affinity in FILE is not YAML"),
        (f"bind-concurrency: {'x' * 100}", f"is '{'x' * 59}...; give a whole number"),
        ("policyOptions: {seed: [1]}", "policy-option in FILE: seed is [1]; give a text, a number, true or false"),
        ("policyOptions: {seed: }", "policy-option in FILE: seed is empty; give a text, a number, true or false"),
        ("policyOptions: {seed: 1}\npolicy-option: [a=1]", "sets policy-option a second time; keep one of the two"),
        ("scheduler-name: ['']", "scheduler-name is empty; give the spec.schedulerName"),
        ("[1, 2]", "the configuration FILE is [1, 2], not a mapping; give lines like"),
        ("5", "the configuration FILE is 5, not a mapping"),
        ("a: [", "not valid YAML"),
        ("policy: 2020-13-45\npolicy: x", "FILE is not valid YAML: the key 'policy' is given twice, line 2; drop one"),
        (f"a: {'9' * 5000}", "FILE is not valid YAML"),
        (f"a: {'[' * 5000}", "FILE is not valid YAML"),
        (
            "renew-deadline: 20",
            "lease-duration (15) must be more than renew-deadline (20), and that more than 1.2 times retry-period (2)",
        ),
        ("log-level: loud", "log-level in FILE is 'loud'; give one of debug, info, warning, error"),
        ("health-port: 70000", "health-port in FILE is 70000; give a whole number from -1 to 65535"),
        ("policy-option: [x]", "policy-option is 'x'; give it as K=V"),
        ("firmament-address: h:1\npolicy: p", "policy belongs to the flow service: give --policy to `firmament serve`"),
        ("firmament-address: h:1\nstats-address: h:2", "stats-address belongs to the flow service"),
        ("firmament-ca-file: /x", "needs firmament-address"),
        ("firmament-address: h:1\nfirmament-cert-file: /x\nfirmament-key-file: /y", "need firmament-ca-file"),
        ("firmament-address: h:1\nfirmament-ca-file: /x\nfirmament-cert-file: /x", "go together"),
        (
            "firmament-address: h:1\nfirmament-ca-file: /not/there",
            "there is no file /not/there; correct firmament-ca-file",
        ),
        (
            f"firmament-address: h:1\nfirmament-ca-file: {__file__}",
            f"firmament-ca-file {__file__} cannot be used (no certificate",
        ),
        ("firmament-address: h:1\nusage-samples: 5", "usage-samples belongs to the flow service"),
        ("usage: everything", "usage in FILE is 'everything'; give one of requests, used, larger"),
        (
            "usage-interval: 0.5",
            "usage-interval in FILE is 0.5; give a number of seconds from 1 to 86400",
        ),
        ("usage-interval: often", "usage-interval in FILE is 'often'; give a number"),
        ("usage-interval: true", "usage-interval in FILE is True; give a number"),
        ("bandwidth: maybe", "bandwidth in FILE is 'maybe'; give one of on, off, auto"),
        ("prometheus-queries: {pod-cpu: up}", "prometheus-queries needs prometheus-url"),
        ("prometheus-url: prometheus:9090", "prometheus-url must be like http://HOST:PORT"),
        ("prometheus-url: http://me:secret@h:9090", "prometheus-url has a user or a password before the @, which"),
        ("prometheus-url: me:secret@h", "token by prometheus-token-file"),
        ("prometheus-url: http://h:port", "prometheus-url must be like http://HOST:PORT"),
        ("prometheus-url: http://h\nprometheus-queries: {pods-cpu: up}", "unknown key 'pods-cpu'; there are: pod-cpu"),
        ("prometheus-queries: {pod-cpu: 5}", "prometheus-queries in FILE is {'pod-cpu': 5}; give a mapping of texts"),
        ("prometheus-queries: up", "prometheus-queries in FILE is 'up'; give a mapping of texts to texts"),
        ("prometheus-url: http://h\nprometheus-ca: /not/there", "there is no file /not/there"),
        (f"prometheus-url: http://h\nprometheus-ca: {__file__}", "give a readable file of PEM certificates"),
        ("batch-window: .nan", "batch-window in FILE is nan; give a finite number"),
        ("lease-duration: .inf", "lease-duration in FILE is inf; give a finite number"),
        (f"event-rate: {10**400}", "event-rate in FILE is 1000"),
        ("usage-stale: .nan", "usage-stale in FILE is nan; give a finite number"),
        (
            "startup-timeout: 0",
            "startup-timeout in FILE is 0; give a number of seconds above 0",
        ),
        (
            "startup-timeout: -1",
            "startup-timeout in FILE is -1; give a number of seconds above 0",
        ),
        ("rpc-timeout: 0", "rpc-timeout in FILE is 0; give a number of seconds above 0"),
        ("bind-timeout: 0", "bind-timeout in FILE is 0; give a number of seconds above 0"),
        (
            "volume-timeout: -1",
            "volume-timeout in FILE is -1; give a number of seconds above 0",
        ),
        ("watch-timeout: 0", "watch-timeout in FILE is 0; give a number of seconds above 0"),
        ("watch-silence: 0", "watch-silence in FILE is 0; give a number of seconds above 0"),
        ("bind-patience: -1", "bind-patience in FILE is -1; give a number of seconds of 0 or more, or a duration"),
        (
            "gang-reserve-after: later",
            "gang-reserve-after in FILE is 'later'; give a number of seconds of 0 or more",
        ),
        (
            "gang-reserve-after: -1",
            "gang-reserve-after in FILE is -1; give a number of seconds of 0 or more",
        ),
        ("gang-reserve-after: .nan", "gang-reserve-after in FILE is nan; give a finite number"),
        ("gang-reserve-after: true", "gang-reserve-after in FILE is True; give a number"),
        ("gangs-from: job", "gangs-from has an unknown kind 'job'; did you mean 'jobs'?"),
        ("gangs-from: [jobs, x]", "gangs-from has an unknown kind 'x'; give some of jobs, jobsets, leaderworkersets"),
        ("gangs-from: ''", "gangs-from has an unknown kind ''; give some of jobs"),
        ("gangs-from: jobs,all", "gangs-from has 'all' beside other kinds; give either"),
        (
            "gang-reserve-after: 60\nfirmament-address: h:1",
            "gang-reserve-after belongs to the flow service: give --reserve-after to `firmament serve`",
        ),
    ],
)
def test_an_invalid_setting_is_named(tmp_path, text, says):
    file = tmp_path / "c"
    file.write_text(text)
    with pytest.raises(OptionError, match=r".+") as caught:
        loading.settings(read_file(file), {}, file)
    assert says.replace("FILE", str(file)) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "secret" not in str(caught.value)


def test_a_file_that_is_not_text(tmp_path):
    (tmp_path / "c").write_bytes(b"policy: caf\xe9")
    with pytest.raises(OptionError, match="is not text in UTF-8; save it as YAML in UTF-8"):
        read_file(tmp_path / "c")


def test_a_file_that_does_not_exist(tmp_path):
    with pytest.raises(OptionError, match="No such file"):
        read_file(tmp_path / "none")


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
def test_the_interval_of_usage_polls(tmp_path, text, seconds):
    (tmp_path / "c").write_text(text)
    assert loading.usage_interval(loading.settings(read_file(tmp_path / "c"), {})) == seconds


@pytest.mark.parametrize(("text", "argument"), [("900", "900"), ("0", "0"), ("2.5", "2.5"), ("never", "never")])
def test_the_reserve_after_argument_of_the_supervised_flow_service(tmp_path, text, argument):
    (tmp_path / "c").write_text(f"gang-reserve-after: {text}")
    given = loading.settings(read_file(tmp_path / "c"), {})
    assert loading.service_arguments(given) == ["--reserve-after", argument]


def test_the_usage_arguments_of_the_supervised_flow_service():
    assert loading.service_arguments(Settings(firmament_args=("-x",))) == ["-x"]
    given = Settings(usage="larger", usage_samples=5, usage_half_life=30.0, usage_stale=60.0)
    assert loading.service_arguments(given) == [
        *("--usage", "larger"),
        *("--usage-samples", "5"),
        *("--usage-half-life", "30"),
        *("--usage-stale", "60"),
    ]
    reach = Settings(stats_address="0.0.0.0:9091", firmament_insecure=True)
    assert loading.service_arguments(reach) == ["--stats-address", "0.0.0.0:9091", "--insecure"]


def test_the_preemption_arguments_of_the_supervised_flow_service(tmp_path):
    (tmp_path / "c").write_text("preemption: off")  # which YAML reads as false
    given = loading.settings(read_file(tmp_path / "c"), {})
    assert loading.service_arguments(given) == ["--preemption", "off"]
    (tmp_path / "c").write_text("preemption: on\npreempt-beyond-budgets: true")
    given = loading.settings(read_file(tmp_path / "c"), {})
    assert loading.service_arguments(given) == ["--preempt-beyond-budgets"]


def test_the_migration_arguments_of_the_supervised_flow_service():
    assert Settings().migrate == "for-waiting"
    assert loading.service_arguments(Settings()) == []
    assert loading.service_arguments(Settings(migrate="always")) == ["--migrate", "always"]
    given = loading.settings({"migrate": "always"}, {"migrate_after": 60.0})
    assert loading.service_arguments(given) == ["--migrate", "always", "--migrate-after", "60"]
    with pytest.raises(OptionError, match=r"--migrate is 'sometimes'; give one of never, for-waiting, always"):
        loading.settings({}, {"migrate": "sometimes"})


@pytest.mark.parametrize(
    "text", ["preemption: off", "preempt-beyond-budgets: true", "migrate: always", "migrate-after: 9"]
)
def test_evictions_are_switched_on_an_external_flow_service_itself(tmp_path, text):
    (tmp_path / "c").write_text(f"{text}\nfirmament-address: h:1")
    with pytest.raises(OptionError, match=r"belongs to the flow service: give --(preempt.*|migrate.*) to `firmament"):
        loading.settings(read_file(tmp_path / "c"), {})


@pytest.mark.parametrize(("text", "mode"), [("on", "on"), ("off", "off"), ("'on'", "on"), ("auto", "auto")])
def test_on_and_off_are_words_although_yaml_reads_booleans(tmp_path, text, mode):
    (tmp_path / "c").write_text(f"bandwidth: {text}")
    assert loading.settings(read_file(tmp_path / "c"), {}).bandwidth == mode


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("leader-elect: No", {"leader_elect": False}),
        ("leader-elect: Off", {"leader_elect": False}),
        ("leader-elect: YES", {"leader_elect": True}),
        ("preemption: no", {"preemption": "off"}),
        ("preemption: OFF", {"preemption": "off"}),
        ("suspend-workloads: No", {"suspend_workloads": "off"}),
        ("bandwidth: yes", {"bandwidth": "on"}),
        ("queues: Off", {"queues": "off"}),
        ("usage-interval: no", {"usage_interval": "off"}),
        ("lease-name: yes", {"lease_name": "yes"}),
    ],
)
def test_booleans_of_yaml_1_1_in_files_with_keys_like_flags(tmp_path, text, changes):
    (tmp_path / "c").write_text(text)
    assert loading.settings(read_file(tmp_path / "c"), {}) == msgspec.structs.replace(Settings(), **changes)


@pytest.mark.parametrize(
    ("text", "value"),
    [("010271", 10271), ("0o17", 15), ("0x1F", 31), ("-5", -5), ("1:30", "1:30"), ("1_000", "1_000"), ("0b1", "0b1"),
     ("1e3", 1000.0), ("1e+06", 1e6), (".5", 0.5), ("-.inf", float("-inf")), ("1.2.3", "1.2.3"), ("15s", "15s")],
)  # fmt: skip
def test_numbers_of_files_are_those_of_yaml_1_2(tmp_path, text, value):
    (tmp_path / "c").write_text(f"a: {text}")
    found = read_yaml(tmp_path / "c")["a"]
    assert found == value
    assert type(found) is type(value)


@given(st.recursive(st.text() | st.integers() | st.floats(allow_nan=False) | st.booleans() | st.sampled_from(
    ["1e3", "010", "1:30", "on", "0o7", "1_0", "=", "2020-01-01"]), st.lists, max_leaves=4))  # fmt: skip
def test_what_is_written_is_read_back(value):
    assert parse_yaml(yaml_text({"a": value})) == {"a": value}


@pytest.mark.parametrize("content", ["policy: " + "[" * 5000], ids=["nested"])
def test_a_file_that_crashes_the_yaml_parser_is_named(tmp_path, content):
    (tmp_path / "c").write_text(content)
    with pytest.raises(OptionError, match="is not valid YAML"):
        read_file(tmp_path / "c")


@pytest.mark.parametrize(
    ("flags", "owners"),
    [
        ((), ()),
        (("none",), ()),
        (("jobsets, Jobs",), ("jobs", "jobsets")),
        (("jobs", "tfjobs,jobs"), ("jobs", "tfjobs")),
        (("all",), tuple(OWNER_KINDS)),
    ],
)
def test_the_kinds_of_owners_whose_pods_are_gangs(flags, owners):
    assert loading.gang_owners(loading.settings({}, {"gangs_from": flags})) == owners
