"""What comes from outside and is not what it says: a transceiver's packets, packets only a kernel
reads. A small siege each; `make siege` lays the large ones."""

import pytest

from tests.lab.service_config import Datapath
from tests.siege import odd_packets, spoofed_transceiver, stage


@pytest.fixture(autouse=True)
def _prefix(lab_prefix: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stage, "PREFIX", lab_prefix)


@pytest.mark.parametrize("datapath", ["xdp", pytest.param("socket", marks=pytest.mark.slow)])
def test_a_transceiver_outside_reaches_no_client(datapath: Datapath) -> None:
    values = spoofed_transceiver.measure(datapath, 100).values
    assert values[f"spoofed_transceiver_delivered_{datapath}"] == 0
    assert values.get("spoofed_transceiver_read", 0) == 0


def test_odd_packets_take_a_small_budget() -> None:
    values = odd_packets.measure(10_000).values
    read = values["odd_packets_read"]
    assert isinstance(read, int)
    assert 0 < read <= odd_packets.BUDGET
    assert values["odd_packets_lost"] == 0
