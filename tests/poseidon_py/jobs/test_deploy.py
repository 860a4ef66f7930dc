"""deploy/chart/definitions/jobs.yaml agrees with the code. tests/deploy/ has the chart, tests/e2e/jobs/test_rights.py
the rights."""

import yaml

from poseidon_py.jobs.rules.machines import JobPhase
from tests.paths import ROOT


def test_the_definitions_have_the_phases_and_the_kinds():
    items = list(yaml.safe_load_all((ROOT / "deploy" / "chart" / "definitions" / "jobs.yaml").read_text()))
    names = [f"{each['spec']['names']['plural']}.{each['spec']['group']}" for each in items]
    assert names == [each["metadata"]["name"] for each in items]
    assert names == ["jobs.batch.volcano.sh", "commands.bus.volcano.sh", "podgroups.scheduling.volcano.sh"]
    schema = items[0]["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]
    phases = schema["status"]["properties"]["state"]["properties"]["phase"]["enum"]
    assert set(phases) == set(JobPhase) - {JobPhase.NEW}
