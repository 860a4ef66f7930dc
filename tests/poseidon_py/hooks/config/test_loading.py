"""The configuration file: what it says, and what its errors say."""

from pathlib import Path

import pytest

from poseidon_py.hooks.config.hook_config import Hook, HookConfig, Retry, Selector
from poseidon_py.hooks.config.loading import HookConfigError, load_hooks
from tests.poseidon_py.hooks.world import make_transition

KEY = "0123456789abcdef0123456789abcdef"
FULL = """
namespace: hooks
hooks:
  - name: billing
    url: https://billing.example.com:8443/events?team=a
    on:
      - machine: [job, replica]
        after: Running
      - before: ["Running", "Restarting"]
    namespaces: [team-a, "no"]
    secret: {file: keys/billing}
    timeout: 5s
    retry: {attempts: 3, first: 0.5, longest: 1m30s}
    headers:
      X-Team: a
      Authorization: {env: TOKEN}
    concurrency: 2
    maxPending: 10
    maxDead: 5
  - {name: audit, url: "http://127.0.0.1:8080"}
"""


def load(tmp_path, text, **environment):
    file = tmp_path / "hooks.yaml"
    file.write_text(text)
    return load_hooks(file, environment)


def problems(tmp_path, text, **environment):
    with pytest.raises(HookConfigError) as caught:
        load(tmp_path, text, **environment)
    return caught.value.problems


def hook(lines):
    return f"hooks:\n  - name: a\n    url: https://a/\n    {lines}\n"


def test_all_fields(tmp_path):
    (tmp_path / "keys").mkdir()
    (tmp_path / "keys" / "billing").write_text(KEY)
    config = load(tmp_path, FULL, TOKEN="Bearer x")
    billing, audit = config.hooks
    assert config.namespace == "hooks"
    assert billing.url == "https://billing.example.com:8443/events?team=a"
    assert billing.on == (
        Selector(frozenset({"job", "replica"}), None, frozenset({"Running"})),
        Selector(None, frozenset({"Running", "Restarting"}), None),
    )
    assert billing.namespaces == {"team-a", "no"}
    assert billing.secret is not None
    assert billing.secret.read() == (KEY,)
    assert (billing.timeout, billing.retry) == (5.0, Retry(3, 0.5, 90.0))
    assert [(name, source.read()) for name, source in billing.headers] == [
        ("X-Team", ("a",)),
        ("Authorization", ("Bearer x",)),
    ]
    assert (billing.concurrency, billing.max_pending, billing.max_dead) == (2, 10, 5)
    assert audit == Hook("audit", "http://127.0.0.1:8080")


@pytest.mark.parametrize(
    ("fields", "selected"),
    [
        ({}, {"both", "running"}),
        ({"namespace": "other"}, {"running"}),
        ({"after": "Completed", "before": "Running"}, {"both"}),
        ({"machine": "task"}, {"running"}),
        ({"machine": "task", "after": "Completed"}, set()),
        ({"before": ""}, {"both", "running", "new"}),
    ],
)
def test_selection(tmp_path, fields, selected):
    text = """
    hooks:
      - {name: both, url: "http://a", namespaces: ns, on: [{machine: job}, {before: Running, machine: replica}]}
      - {name: running, url: "http://a", on: [{after: [Running, Failed]}]}
      - {name: new, url: "http://a", on: [{before: ""}]}
    """
    config: HookConfig = load(tmp_path, text)
    assert {each.name for each in config.selecting(make_transition(**fields))} == selected


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        ("timeout: 0", "hooks[0].timeout: is 0; give seconds from 0.1 to 300, or a duration such as 10s or 5m"),
        ("timeout: .nan", "hooks[0].timeout: is nan; give seconds"),
        ("timeout: 5 minutes", "hooks[0].timeout: is '5 minutes'; give seconds"),
        ("timeout: '10'", "hooks[0].timeout: is '10'; give seconds"),
        ("timeout: 1d", "hooks[0].timeout: is '1d'; give seconds"),
        ("timeout: true", "hooks[0].timeout: is True; give seconds"),
        ("concurrency: 0", "hooks[0].concurrency: is 0; give a whole number from 1 to 256"),
        ("maxPending: many", "hooks[0].maxPending: is 'many'; give a whole number"),
        ("retry: 3", "hooks[0].retry: is 3; give a mapping"),
        ("retry: {attempts: 0}", "hooks[0].retry.attempts: is 0; give a whole number from 1 to 1000"),
        ("retry: {first: 10, longest: 5}", "hooks[0].retry.first: is 10 s, more than longest (5 s); give less"),
        ("retry: {attemps: 3}", "hooks[0].retry.attemps: is not a known key; did you mean attempts?"),
        ("on: []", "hooks[0].on: is []; give a list of at least one item"),
        ("on: [Running]", "hooks[0].on[0]: is 'Running'; give a mapping"),
        ("on: [{machine: pod}]", "hooks[0].on[0].machine: has 'pod'; give one of job, task, replica"),
        ("on: [{after: []}]", "hooks[0].on[0].after: is an empty list, which selects nothing"),
        ("on: [{after: [1]}]", "hooks[0].on[0].after: has 1; give a text or a list of texts"),
        ("namespace: x", "hooks[0].namespace: is not a known key; did you mean namespaces?"),
        ("secret: abc", "hooks[0].secret: is a text; give {file: PATH} or {env: NAME}, so that the value stays out"),
        ("secret: {value: abc}", "hooks[0].secret: is not one of file and env; give {file: PATH} or {env: NAME}"),
        ("secret: {env: ABSENT}", "hooks[0].secret: there is no environment variable ABSENT; set it, or correct"),
        ("secret: {env: SHORT}", "hooks[0].secret: has a key of less than 16 bytes; make one with `openssl rand"),
        ("secret: {env: EMPTY}", "hooks[0].secret: environment variable EMPTY is empty; give it a value"),
        ("headers: {Host: x}", "hooks[0].headers.Host: is set by the sender; drop it"),
        ("headers: {Poseidon-Signature: x}", "hooks[0].headers.Poseidon-Signature: is set by the sender; drop it"),
        ('headers: {"a b": x}', "hooks[0].headers.a b: is not the name of a header"),
        ('headers: {X: "a\\tb"}', "hooks[0].headers.X: has a value that is not printable ASCII text"),
        ("ca: absent.pem", "hooks[0].ca: "),
    ],
)
def test_errors_name_the_field_the_value_and_the_remedy(tmp_path, lines, problem):
    found = problems(tmp_path, hook(lines), SHORT="abc", EMPTY=" ")
    assert len(found) == 1
    assert found[0].startswith(problem)


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("ftp://a", "is 'ftp://a'; give an http or https URL"),
        ("https://", "is 'https://'; give an http or https URL"),
        ("https://a:99999", "is 'https://a:99999'; give an http or https URL"),
        ("http://[::1", "is 'http://[::1'; give an http or https URL"),
        ("https://a b", "is 'https://a b'; give an http or https URL"),
        ("https://u:p@a", "has a user or a password; give them as a header with {file: PATH} or {env: NAME}"),
        ("https://a/#x", "has a fragment (#...), which is never sent; drop it"),
        ("[]", "is []; give an http or https URL"),
    ],
)
def test_bad_urls(tmp_path, url, problem):
    value = url if url == "[]" else f"'{url}'"
    assert problems(tmp_path, f"hooks: [{{name: a, url: {value}}}]")[0].startswith(f"hooks[0].url: {problem}")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "the file is empty; give a mapping"),
        ("[]", "the file is []; give a mapping"),
        ("{}", "hooks: is missing; give a list of hooks, each with a name and a url"),
        ("hooks: {}", "hooks: is {}; give a list of at least one item"),
        ("hooks: [1]", "hooks[0]: is 1; give a mapping"),
        ("hooks: [{url: 'http://a'}]", "hooks[0].name: is missing; give a short name, such as billing"),
        ("hooks: [{name: a}]", "hooks[0].url: is missing; give the http or https URL of the endpoint"),
        ("hooks: [{name: A_b, url: 'http://a'}]", "hooks[0].name: is 'A_b'; give at most 63 lower-case letters"),
        (
            "hooks: [{name: a, url: 'http://a'}, {name: a, url: 'http://b'}]",
            "hooks[1].name: is 'a' as of hooks[0]; names are unique",
        ),
        ("hook: []\nhooks: [{name: a, url: 'http://a'}]", "hook: is not a known key; did you mean hooks?"),
    ],
)
def test_bad_files(tmp_path, text, problem):
    assert any(each.startswith(problem) for each in problems(tmp_path, text))


def test_what_is_not_yaml_or_not_there(tmp_path):
    assert "is not valid YAML" in problems(tmp_path, "hooks: [")[0]
    assert "the key 'name' is given twice" in problems(tmp_path, "hooks: [{name: a, name: b}]")[0]
    with pytest.raises(HookConfigError, match=r"cannot read .*absent.yaml: No such file.*correct the path"):
        load_hooks(Path("absent.yaml"))


def test_all_problems_are_reported_at_once(tmp_path):
    text = "hooks: [{name: A, url: x, timeout: 0}, {name: fine, url: 'http://a'}, {name: b, url: x, other: 1}]"
    assert [each.partition(":")[0] for each in problems(tmp_path, text)] == [
        "hooks[0].name",
        "hooks[0].url",
        "hooks[0].timeout",
        "hooks[2].url",
        "hooks[2].other",
    ]
