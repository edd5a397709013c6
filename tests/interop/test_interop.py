"""The short part of the suite: a browser's client with a tool, a server's SDK on the sideband."""

import pytest

from tests.interop.clients import clients
from tests.interop.stage import Stage


@pytest.mark.parametrize("name", ["agents_realtime", "openai_python"])
def test_every_cell_of_the_client_holds(stage: Stage, name: str) -> None:
    client = next(each for each in clients(stage) if each.name == name)
    measurement = client.measurement()
    found = measurement.measure()
    wrong = {
        target.name: found.values[target.name]
        for target in measurement.targets
        if not target.met(found.values[target.name])
    }
    assert not wrong, found.detail
