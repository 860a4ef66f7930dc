"""PoseidonConfiguration: what is read, what is refused and how, and that it says all that flags do."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from poseidon_py.cli.main import cli
from poseidon_py.config import loading
from poseidon_py.config.configuration_file import read_file
from poseidon_py.config.conversion import OptionError
from poseidon_py.config.document import document_of, read_document
from poseidon_py.config.document_schema import document_schema
from poseidon_py.config.fields import FIELDS
from poseidon_py.config.layout import HEADINGS, LAYOUT, OF_PROFILES, PLACES, PROFILES
from poseidon_py.config.settings import Settings
from tests.command_line import invoke
from tests.effort import examples

HEAD = {"apiVersion": "poseidon.io/v1", "kind": "PoseidonConfiguration"}
VALIDATOR = Draft202012Validator(document_schema())


def settings_of(document: Any) -> Settings:
    return loading.settings(read_document(document, "FILE"), {})


def problems_of(document: Any) -> tuple[str, ...]:
    with pytest.raises(OptionError) as caught:
        read_document(document, "FILE")
    return caught.value.problems


def nested(path: tuple[str, ...], value: Any) -> dict[str, Any]:
    return nested(path[:-1], {path[-1]: value}) if path else dict(value)


def test_every_setting_has_one_place_and_every_section_a_heading():
    assert sorted([*PLACES, *OF_PROFILES]) == sorted(FIELDS)
    assert set(HEADINGS) == {*LAYOUT, PROFILES}


def test_what_it_says_is_what_flags_say():
    document = yaml.safe_load("""
        apiVersion: poseidon.io/v1
        kind: PoseidonConfiguration
        clientConnection: {kubeconfig: /k, qps: 50, burst: 7}
        profiles:
        - schedulerName: a
          policy: {name: load-spreading, options: {by: requested, spare-devices: 3, strict: true}}
        - schedulerName: b
        leaderElection: {leaderElect: false, leaseDuration: 1m, renewDeadline: 40s, resourceName: l}
        preemption: {enabled: false, protectedPriorityClasses: [x, y]}
        gangs: {reserveAfter: never, from: [jobs]}
        queues:
        usage: {interval: "off", prometheus: {url: "http://p:9090", queries: {x: y}}}
        rounds: {window: 5ms, longestWindow: 1m30s}
    """)
    flags = {
        "kubeconfig": Path("/k"), "kube_api_qps": 50.0, "kube_api_burst": 7, "scheduler_name": ("a", "b"),
        "policy": "load-spreading", "policy_option": ("by=requested", "spare-devices=3", "strict=true"),
        "leader_elect": False, "lease_duration": "60", "renew_deadline": "40s", "lease_name": "l", "preemption": "off",
        "protected_priority_classes": ("x", "y"), "gang_reserve_after": "never", "gangs_from": ("jobs",),
        "usage_interval": "off", "prometheus_url": "http://p:9090", "batch_window": "0.005", "batch_window_max": "90",
    }  # fmt: skip
    expected = msgspec.structs.replace(
        loading.settings({}, {key: value for key, value in flags.items() if key != "prometheus_url"}),
        prometheus_url="http://p:9090", prometheus_queries={"x": "y"},
    )  # fmt: skip
    read = read_document(document, "FILE")
    assert msgspec.structs.replace(Settings(), **read) == expected
    VALIDATOR.validate(document)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("leaderElection: {leaseDuration: 15}", "leaderElection.leaseDuration in FILE is 15; give a duration such as"),
        ("leaderElection: {leaseDuration: '15'}", "leaderElection.leaseDuration in FILE is '15'; give a duration"),
        ("leaderElection: {leaseDuration: -3s}", "leaderElection.leaseDuration in FILE is '-3s'; give a duration"),
        ("leaderElection: {leaseDuration: }", "leaderElection.leaseDuration in FILE is empty; give a duration"),
        ("leaderElection: {leaseDuration: 0s}", "is '0s'; give a duration such as 15s or 1h30m above 0s"),
        ("leaderElection: {leaseduration: 3s}", "leaderElection.leaseduration in FILE is unknown; did you mean lease"),
        ("leaderElection: {lease-duration: 3s}", "is unknown; did you mean leaderElection.leaseDuration?"),
        ("leaseDuration: 3s", "leaseDuration in FILE is unknown; did you mean leaderElection.leaseDuration?"),
        ("leaderElection: [a]", "leaderElection in FILE is ['a']; give a mapping"),
        ("usage: {prometheus: {Url: x}}", "usage.prometheus.Url in FILE is unknown; did you mean url?"),
        ("metadata: {name: x}", "metadata in FILE is unknown; there are apiVersion, kind, profiles, clientConnection"),
        ("moves: {after: -3s}", "moves.after in FILE is '-3s'; give a duration such as 15s or 1h30m of 0s or more"),
        ("moves: {when: sometimes}", "moves.when in FILE is 'sometimes'; give one of never, for-waiting, always"),
        ("moves: {atOnce: '3'}", "moves.atOnce in FILE is '3'; give a whole number of 1 or more"),
        ("preemption: {enabled: 'on'}", "preemption.enabled in FILE is 'on'; give true or false"),
        ("gangs: {from: jobs}", "gangs.from in FILE is 'jobs'; give a list of texts"),
        ("usage: {interval: 5}", "usage.interval in FILE is 5; give a duration such as 15s or 1h30m from 1s to 86400s"),
        ("profiles: []", "profiles in FILE is []; give a list of at least one profile"),
        ("profiles: [a]", "profiles[0] in FILE is 'a'; give a mapping"),
        ("profiles: [{policy: {name: x}}]", "profiles[0].schedulerName in FILE is empty; give the spec.schedulerName"),
        ("profiles: [{schedulerName: a, plugins: {}}]", "profiles[0].plugins in FILE is unknown; there are scheduler"),
        ("profiles: [{schedulerName: a, policy: x}]", "profiles[0].policy in FILE is 'x'; give a mapping"),
        ("profiles: [{schedulerName: a, policy: {nam: x}}]", "profiles[0].policy.nam in FILE is unknown; did you mean"),
        (
            "profiles: [{schedulerName: a, policy: {options: {b: [1]}}}]",
            "policy.options in FILE: b is [1]; give",
        ),
        (
            "profiles: [{schedulerName: a}, {schedulerName: a}]",
            "profiles[1].schedulerName in FILE is 'a'; it is that",
        ),
        (
            "profiles: [{schedulerName: a, policy: {name: x}}, {schedulerName: b, policy: {name: y}}]",
            "profiles[1].policy in FILE differs from profiles[0].policy; all profiles of a process have one policy",
        ),
    ],
)
def test_each_problem_is_named_by_its_path(text, problem):
    document = HEAD | yaml.safe_load(text)
    (found,) = problems_of(document)
    assert problem in found
    beyond_schemas = ("differs from", "it is that of", "is '0s'")  # what they cannot say
    assert VALIDATOR.is_valid(document) == any(words in found for words in beyond_schemas)


def test_all_problems_are_reported_at_once():
    document = HEAD | {"moves": {"x": 1, "when": 2}, "y": 3, "profiles": [{}]}
    assert [found.partition(" in FILE")[0] for found in problems_of(document)] == [
        "moves.x",
        "moves.when",
        "y",
        "profiles[0].schedulerName",
    ]


@pytest.mark.parametrize(
    ("head", "problems"),
    [
        (
            {"apiVersion": "apps/v1", "kind": "Deployment"},
            [
                "apiVersion in FILE is 'apps/v1'; give poseidon.io/v1",
                "kind in FILE is 'Deployment'; give PoseidonConfiguration",
            ],
        ),
        ({"kind": "PoseidonConfiguration"}, ["apiVersion in FILE is empty; give poseidon.io/v1"]),
        ({**HEAD, "apiVersion": "poseidon.io/v2"}, ["apiVersion in FILE is 'poseidon.io/v2'; give poseidon.io/v1"]),
    ],
)
def test_another_kind_of_configuration_is_named_and_nothing_else(head, problems):
    assert list(problems_of(head | {"profiles": 5})) == problems


VALUES = {
    "scheduler_name": st.lists(st.text("ab", min_size=1), min_size=1, max_size=3, unique=True).map(tuple),
    "policy_option": st.lists(st.sampled_from("abc"), unique=True).map(lambda keys: tuple(f"{k}=1.50" for k in keys)),
}


def values_of(name: str) -> st.SearchStrategy[Any]:
    """Values of a setting: words, and numbers in its range."""
    field = FIELDS[name]
    if field.words:
        return st.sampled_from(field.words)
    if field.in_seconds:
        return st.integers(1, 10**7).map(lambda milliseconds: milliseconds / 1000)
    kind = type(field.kinds[0]).__name__
    return {
        "IntType": st.integers(1, 60_000),
        "FloatType": st.floats(1, 100, width=16),
        "StrType": st.text("on1.:=- ", min_size=1),
        "BoolType": st.booleans(),
        "VarTupleType": st.lists(st.text("on1 ", min_size=1)).map(tuple),
        "CustomType": st.text("on1/", min_size=1).map(Path),
        "DictType": st.dictionaries(st.text("ab", min_size=1), st.text("on1")),
    }[kind]


@examples(100)
@given(st.data())
def test_what_is_shown_is_read_again_as_it_was(data):
    """Whatever the settings are: YAML takes no text for a number, and durations are exact."""
    names = data.draw(st.lists(st.sampled_from(sorted(FIELDS)), unique=True))
    changed = {name: data.draw(VALUES[name] if name in VALUES else values_of(name), label=name) for name in names}
    settings = msgspec.structs.replace(Settings(), **changed)
    document = document_of(settings)
    VALIDATOR.validate(document)
    text = yaml.safe_dump(document, sort_keys=False)
    assert msgspec.structs.replace(Settings(), **read_document(yaml.safe_load(text), "FILE")) == settings
    assert msgspec.structs.replace(Settings(), **read_document(json.loads(json.dumps(document)), "FILE")) == settings


def test_the_default_file_has_each_setting_and_changes_none(tmp_path):
    text = invoke(cli, "config", "default").output
    (tmp_path / "c").write_text(text)
    assert loading.settings(read_file(tmp_path / "c"), {}) == Settings()
    for place in PLACES.values():
        assert f" {place[-1]}:" in text


def test_the_schema_is_one():
    schema = json.loads(invoke(cli, "config", "schema").output)
    Draft202012Validator.check_schema(schema)
    assert schema == document_schema()


def test_an_old_file_is_shown_in_the_new_form(tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    old.write_text("scheduler-name: [a, b]\npreemption: off\nlease-duration: 20\ngang-reserve-after: 90s\n")
    done = invoke(cli, "config", "show", "--config", str(old), "--kube-api-qps=50", "--leader-elect=false", "-v", "4")
    new.write_text(done.output)
    flags = {"kube_api_qps": 50.0, "leader_elect": False, "log_level": "debug"}
    assert loading.settings(read_file(new), {}) == loading.settings(read_file(old), flags)
    assert yaml.safe_load(done.output)["profiles"] == [{"schedulerName": "a"}, {"schedulerName": "b"}]


def test_files_are_checked_all_at_once(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(yaml.safe_dump(HEAD | {"moves": {"after": "1m"}}))
    bad.write_text(yaml.safe_dump(HEAD | {"moves": {"after": 60}, "x": 1}))
    done = invoke(cli, "config", "check", str(bad), str(good))
    assert done.exit_code == 2
    assert f"{good}: valid" in done.output
    assert f"moves.after in {bad} is 60; give a duration" in done.output
    assert f"x in {bad} is unknown" in done.output
    assert invoke(cli, "config", "check", str(good)).exit_code == 0


def checked(tmp_path, *texts):
    """The lines that are printed about files of these settings."""
    files = [tmp_path / f"{number}.yaml" for number in range(len(texts))]
    for file, text in zip(files, texts, strict=True):
        file.write_text(f"apiVersion: poseidon.io/v1\nkind: PoseidonConfiguration\n{text}\n")
    done = invoke(cli, "config", "check", *map(str, files))
    return done.exit_code, done.output.replace(f"{tmp_path}/", "")


def test_files_that_a_configuration_names_have_to_be_there(tmp_path):
    (tmp_path / "hooks").write_text("hooks: [{name: x, url: 'ftp://x'}]")
    code, output = checked(
        tmp_path,
        f"jobs: {{hooksFile: {tmp_path}/hooks}}",
        "jobs: {hooksFile: /none/h}\nclientConnection: {kubeconfig: /none/k}\nqueues: {yunikornFile: /none/q}\n"
        "usage: {prometheus: {url: 'http://h', tokenFile: /none/t}}",
    )
    assert code == 2
    assert "0.yaml: hooks[0].url: is 'ftp://x'; give an http or https URL" in output
    for place, file in (
        ("jobs.hooksFile", "h"), ("clientConnection.kubeconfig", "k"), ("queues.yunikornFile", "q"),
        ("usage.prometheus.tokenFile", "t"),
    ):  # fmt: skip
        assert f"1.yaml: the file /none/{file} is not there; correct {place} (" in output
    (tmp_path / "hooks").write_text("hooks: [{name: x, url: 'http://x'}]")
    assert checked(tmp_path, f"jobs: {{hooksFile: {tmp_path}/hooks}}") == (0, "0.yaml: valid\n")


def test_an_unknown_policy_does_not_hide_the_problems_of_the_next_file(tmp_path):
    code, output = checked(
        tmp_path,
        "profiles: [{schedulerName: a, policy: {name: nope}}]",
        "serving: {healthPort: 9000, securePort: 9000}",
        "serving: {healthPort: 9000, securePort: 9000, bindAddress: 10.0.0.1}",
    )
    assert code == 2
    assert "0.yaml: " in output
    assert "nope" in output
    assert "1.yaml: serving.healthPort and serving.securePort are both 9000; give different ports" in output
    assert "2.yaml: valid" in output


@pytest.mark.parametrize(
    ("document", "flags", "problem"),
    [
        (
            {"leaderElection": {"renewDeadline": "20s"}},
            {},
            "FILE: leaderElection.leaseDuration (15) must be more than leaderElection.renewDeadline (20), and that "
            "more than 1.2 times leaderElection.retryPeriod (2)",
        ),
        (
            {"leaderElection": {"renewDeadline": "20s"}},
            {"lease_duration": "18s"},
            "FILE: --lease-duration (18) must be more than leaderElection.renewDeadline (20), and that more than 1.2 "
            "times leaderElection.retryPeriod (2)",
        ),
        (
            {"logging": {"level": "debug"}},
            {"health_port": 9, "secure_port": 9},
            "--health-port and --secure-port are both 9; give different ports",
        ),
        (
            {
                "profiles": [{"schedulerName": "a", "policy": {"name": "octopus"}}],
                "flowService": {"address": "unix:/x"},
            },
            {},
            "FILE: profiles[].policy.name belongs to the flow service: give --policy to `firmament serve`, not beside "
            "flowService.address",
        ),
        (
            {"flowService": {"address": "h:1"}},
            {},
            "FILE: flowService.address h:1 is on another machine: give flowService.caFile, flowService.certFile and "
            "flowService.keyFile; or flowService.insecure, with which everybody on the way can change what is placed",
        ),
        (
            {"usage": {"prometheus": {"caFile": "/x"}}},
            {},
            "FILE: usage.prometheus.caFile needs usage.prometheus.url",
        ),
        ({"gangs": {"from": ["jobs", "all"]}}, {}, "FILE: gangs.from has 'all' beside other kinds; give either"),
        (
            {"serving": {"certFile": "/x"}},
            {"tls_private_key_file": "/y"},
            "FILE: there is no file /x; correct serving.certFile",
        ),
    ],
)
def test_problems_across_settings_name_them_as_they_were_written(document, flags, problem):
    with pytest.raises(OptionError) as caught:
        loading.settings(read_document(HEAD | document, "FILE"), flags, "FILE")
    assert caught.value.problems == (problem,)


def test_a_configuration_of_kube_scheduler_is_told_from_a_typo():
    (problem,) = problems_of({"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"})
    assert problem.startswith("FILE is a configuration of kube-scheduler, which is not read; give apiVersion poseidon")


@pytest.mark.parametrize(
    ("flags", "changes"),
    [
        (["--leader-elect=false"], {"leader_elect": False}),
        (["--leader-elect=true"], {"leader_elect": True}), (["--leader-elect=t"], {"leader_elect": True}),
        (["--leader-elect=F"], {"leader_elect": False}), (["--leader_elect=FALSE"], {"leader_elect": False}),
        (["--no-leader_elect"], {"leader_elect": False}), (["--lease_name", "a_b"], {"lease_name": "a_b"}),
        (["--leader_elect_resource_name=a_b"], {"lease_name": "a_b"}),
        (["--preemption=false"], {"preemption": "off"}), (["--suspend-workloads=true"], {}),
        (["--bandwidth", "F"], {"bandwidth": "off"}), (["--log-level=DEBUG"], {"log_level": "debug"}),
        (["--leader-elect-lease-duration=1m", "--leader-elect-renew-deadline", "20"],
         {"lease_duration": 60.0, "renew_deadline": 20.0}),
        (["--leader-elect-resource-name=x", "--leader-elect-resource-namespace=y"],
         {"lease_name": "x", "lease_namespace": "y"}),
        (["--leader-elect-retry-period=1s"], {"retry_period": 1.0}),
        (["--kube-api-qps=5000", "--kube-api-burst=10"], {"kube_api_qps": 5000.0, "kube_api_burst": 10}),
        (["-v", "5"], {"log_level": "debug"}), (["-v=2"], {"log_level": "info"}), (["--v=4"], {"log_level": "debug"}),
        (["-v9"], {"log_level": "debug"}), (["--logging-format=json"], {"log_format": "json"}),
    ],
)  # fmt: skip
def test_flags_as_users_of_kube_scheduler_type_them(flags, changes):
    shown = json.loads(invoke(cli, "config", "show", "--json", *flags).output)
    assert shown == document_of(msgspec.structs.replace(Settings(), **changes))


@pytest.mark.parametrize(
    "flags", [["-v"], ["-v", "x"], ["-v="], ["--leader-elect=perhaps"], ["--queues=true"], ["--no_such=1"]]
)
def test_flags_that_are_none_are_refused(flags):
    assert invoke(cli, "config", "show", *flags).exit_code == 2
