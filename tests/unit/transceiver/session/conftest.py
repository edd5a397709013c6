import pytest

from tests.unit.transceiver.session.owner import Owner


@pytest.fixture
def owner() -> Owner:
    return Owner()
