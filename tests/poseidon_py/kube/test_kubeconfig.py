"""An invalid kubeconfig: the error names the file, the key, the value and the remedy."""

import os
from pathlib import Path

import pytest

from poseidon_py.kube import credentials
from poseidon_py.kube.credentials import CredentialsError
from poseidon_py.kube.kubeconfig import server_of

CLUSTER = 'clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]\n'
CONTEXT = "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "the file is empty; give a mapping", id="empty"),
        pytest.param("5", "the file is a whole number; give a mapping", id="number"),
        pytest.param("[1]", "the file is a list; give a mapping", id="list"),
        pytest.param("clusters: 5", "clusters is a whole number; give a list", id="clusters"),
        pytest.param(CONTEXT + "clusters: [3]", "clusters[0] is a whole number; give a mapping", id="cluster"),
        pytest.param(
            CONTEXT + "clusters: [{name: c, cluster: 7}]", "clusters[0].cluster is a whole number; give a", id="inner"
        ),
        pytest.param(
            CONTEXT + "clusters: [{name: c, cluster: {server: 7}}]",
            "clusters[0].cluster.server is a whole number; give a text",
            id="server",
        ),
        pytest.param(CLUSTER + "contexts: 5\ncurrent-context: c", "contexts is a whole number; give a", id="contexts"),
        pytest.param(CLUSTER + CONTEXT + "users: {a: 1}", "users is a mapping; give a list", id="users"),
    ],
)
async def test_a_value_of_the_wrong_type_is_named(tmp_path, text, says):
    file = tmp_path / "k"
    file.write_text(text)
    with pytest.raises(CredentialsError) as caught:
        await credentials.load(file, None)
    assert str(caught.value).startswith(f"cannot use the kubeconfig {file}: {says}")


async def test_of_several_files_the_invalid_one_is_named(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(CLUSTER)
    bad.write_text("users: 5")
    with pytest.raises(CredentialsError, match=f"cannot use the kubeconfig {bad}: users is a whole number"):
        await credentials.load(Path(f"{good}{os.pathsep}{bad}"), None)


@pytest.mark.parametrize(
    ("files", "context", "server"),
    [
        pytest.param([CLUSTER + CONTEXT], None, "http://127.0.0.1:9", id="current"),
        pytest.param([CLUSTER + CONTEXT], "c", "http://127.0.0.1:9", id="named"),
        pytest.param([CLUSTER + CONTEXT], "nope", "", id="no-such-context"),
        pytest.param([CONTEXT, CLUSTER], None, "http://127.0.0.1:9", id="in-two-files"),
        pytest.param([CLUSTER + CONTEXT, CLUSTER.replace(":9", ":8")], None, "http://127.0.0.1:9", id="first-counts"),
        pytest.param(["users: 5", CLUSTER + CONTEXT], None, "http://127.0.0.1:9", id="beside-a-wrong-one"),
        pytest.param(
            [CLUSTER.replace("http://127.0.0.1:9", "https://[::1]/a/") + CONTEXT],
            None,
            "https://[::1]:443/a",
            id="ipv6",
        ),
        pytest.param([CLUSTER.replace("127.0.0.1:9", "h:x") + CONTEXT], None, "", id="no-port"),
        pytest.param([CLUSTER], None, "", id="no-context"),
        pytest.param(["{"], None, "", id="no-yaml"),
    ],
)
def test_the_server_of_a_context(tmp_path, files, context, server):
    paths = [tmp_path / str(number) for number in range(len(files))]
    for path, text in zip(paths, files, strict=True):
        path.write_text(text)
    assert server_of(Path(os.pathsep.join(map(str, [*paths, tmp_path / "missing"]))), context) == server


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "https://h", "https://[::1]/a/", "http://H:80/x"])
async def test_it_is_spelled_as_the_scheduler_does(tmp_path, url):
    (tmp_path / "k").write_text(CLUSTER.replace("http://127.0.0.1:9", url) + CONTEXT + "users: [{name: u, user: {}}]")
    access = await credentials.load(tmp_path / "k", None)
    assert server_of(tmp_path / "k", None) == access.url


async def test_other_errors_have_the_message_of_the_loader(tmp_path):
    (tmp_path / "k").write_text(CLUSTER + CONTEXT)
    with pytest.raises(CredentialsError, match=r"k: .*name nope"):
        await credentials.load(tmp_path / "k", "nope")


async def test_a_token_may_look_like_a_number(tmp_path):
    (tmp_path / "k").write_text(CLUSTER + CONTEXT + "users: [{name: u, user: {token: 5}}]")
    assert (await credentials.load(tmp_path / "k", None)).headers == {"Authorization": "Bearer 5"}
