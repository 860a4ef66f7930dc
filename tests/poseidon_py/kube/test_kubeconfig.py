"""A kubeconfig of the wrong form: the file, the key, what was found, what to give."""

import os
from pathlib import Path

import pytest

from poseidon_py.kube import credentials
from poseidon_py.kube.credentials import CredentialsError

CLUSTER = 'clusters: [{name: c, cluster: {server: "http://127.0.0.1:9"}}]\n'
CONTEXT = "contexts: [{name: c, context: {cluster: c, user: u}}]\ncurrent-context: c\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        pytest.param("", "all of it is empty; give a mapping", id="empty"),
        pytest.param("5", "all of it is a whole number; give a mapping", id="number"),
        pytest.param("[1]", "all of it is a list; give a mapping", id="list"),
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


async def test_of_several_files_the_wrong_one_is_named(tmp_path):
    good, bad = tmp_path / "good", tmp_path / "bad"
    good.write_text(CLUSTER)
    bad.write_text("users: 5")
    with pytest.raises(CredentialsError, match=f"cannot use the kubeconfig {bad}: users is a whole number"):
        await credentials.load(Path(f"{good}{os.pathsep}{bad}"), None)


async def test_what_else_is_wrong_is_said_in_the_words_of_the_loader(tmp_path):
    (tmp_path / "k").write_text(CLUSTER + CONTEXT)
    with pytest.raises(CredentialsError, match=r"k: .*name nope"):
        await credentials.load(tmp_path / "k", "nope")


async def test_a_token_may_look_like_a_number(tmp_path):
    (tmp_path / "k").write_text(CLUSTER + CONTEXT + "users: [{name: u, user: {token: 5}}]")
    assert (await credentials.load(tmp_path / "k", None)).headers == {"Authorization": "Bearer 5"}
