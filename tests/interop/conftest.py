"""One stage for the tests of clients."""

from collections.abc import Iterator

import pytest

from tests.interop.install import unavailable
from tests.interop.stage import Stage
from tests.lab import namespace


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    reason = namespace.unavailable() or unavailable()
    if reason is not None:
        pytest.skip(reason)
    with Stage() as stage:
        yield stage
