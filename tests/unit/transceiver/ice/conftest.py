"""An agent, and a client on the wire to it."""

import pytest

from tests.unit.transceiver.ice.wire import OURS, Wire, counter
from transceiver.ice import Agent


@pytest.fixture
def agent() -> Agent:
    return Agent(OURS, counter())


@pytest.fixture
def wire(agent: Agent) -> Wire:
    return Wire(agent)
