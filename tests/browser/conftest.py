"""Labs with all services for the browser tests. Without root or browser they skip, and say why."""

import os
from collections.abc import Iterator

import pytest

from tests.browser import browser
from tests.lab import namespace
from tests.lab.services import Services
from tests.lab.site import in_lab
from tests.lab.topology import Lab

_PREFIX = os.environ.get("LAB_PREFIX", "fb-")


@pytest.fixture(scope="session")
def prefix() -> str:
    reason = namespace.unavailable()
    if reason is not None:
        pytest.skip(reason)
    return _PREFIX


@pytest.fixture(params=["chromium", "firefox"])
def browser_name(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    reason = browser.unavailable(name)
    if reason is not None:
        pytest.skip(reason)
    return name


@pytest.fixture(scope="session")
def faulty_lab(prefix: str) -> Iterator[Lab]:
    """One with the fault hop, for every test that can share it."""
    with Lab(f"{prefix}x-", hop="fault") as lab:
        yield lab


@pytest.fixture(scope="session")
def faulty_services(faulty_lab: Lab) -> Iterator[Services]:
    with Services(in_lab(faulty_lab)) as services:
        yield services


@pytest.fixture
def lab(faulty_lab: Lab) -> Iterator[Lab]:
    """`faulty_lab` without faults."""
    faulty_lab.hop.clear()
    yield faulty_lab
    faulty_lab.hop.clear()


@pytest.fixture
def services(lab: Lab, faulty_services: Services) -> Services:
    return faulty_services
