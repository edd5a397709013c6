"""Fixtures of the lab tests. Without root those that need namespaces skip and say why."""

import os

import pytest

from tests.lab import namespace
from tests.lab.deployment import Place, unavailable

# Not that of `make up`, which may run beside the tests; nor that of other tests beside these.
PREFIX = os.environ.get("LAB_PREFIX", "ft-")


@pytest.fixture(scope="session")
def lab_prefix() -> str:
    reason = namespace.unavailable()
    if reason is not None:
        pytest.skip(reason)
    return PREFIX


@pytest.fixture(scope="module", params=["xdp", "socket", "loopback"])
def place(request: pytest.FixtureRequest) -> Place:
    """Tests that ask for it run at all three places."""
    found: Place = request.param
    reason = unavailable(found)
    if reason is not None:
        pytest.skip(reason)
    return found
