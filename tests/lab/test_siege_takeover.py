"""A live flow goes to whoever proves to be its client, and to nobody else."""

import pytest

from tests.lab.service_config import Datapath
from tests.siege import stage, takeover


@pytest.fixture(autouse=True)
def _prefix(lab_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PREFIX", lab_prefix)


@pytest.mark.parametrize("datapath", ["xdp", pytest.param("socket", marks=pytest.mark.slow)])
def test_a_thief_does_not_get_the_flow(datapath: Datapath) -> None:
    values = takeover.spoof(datapath, 100).values
    assert values[f"takeover_spoofed_succeeded_{datapath}"] == 0
    assert values[f"takeover_victim_lost_{datapath}"] == 0


def test_the_client_itself_gets_its_flow_elsewhere() -> None:
    assert takeover.reuse(10).values["port_reuse_repointed"] == 10
