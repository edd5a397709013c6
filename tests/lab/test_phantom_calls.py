"""Offers whose client never comes: they take nothing from others, and not for long."""

import time
from collections.abc import Iterator

import httpx
import pytest

from signaling.access.api_keys import ApiKey, digest_of
from tests.lab.conftest import PREFIX
from tests.lab.services import Services
from tests.lab.site import LoopbackPlace
from tests.lab.test_hostile_signaling import GOOD

PORTS = 27678
SETUP_S = 4.0
SHOP, BANK = "sk-fl-of-the-shop", "sk-fl-of-the-bank"
HALF_OPEN = 20  # of one subject, in one process
PATIENCE_S = 30.0


@pytest.fixture
def client() -> Iterator[httpx.Client]:
    keys = ApiKey("shop", digest_of(SHOP), 0), ApiKey("bank", digest_of(BANK), 0)
    with LoopbackPlace(f"{PREFIX}phantom", PORTS) as place:
        site = place.site()
        with (
            Services(site, datapath="socket", echo="opus", setup_s=SETUP_S, api_keys=keys),
            httpx.Client(base_url=site.base_url, trust_env=False, timeout=20) as client,
        ):
            yield client


def test_a_subject_has_so_many_and_gets_them_back(client: httpx.Client) -> None:
    def begin(key: str) -> int:
        headers = {"Content-Type": "application/sdp", "Authorization": f"Bearer {key}"}
        return client.post("/v1/realtime/calls", content=GOOD, headers=headers).status_code

    begun = time.monotonic()
    answers = [begin(SHOP) for _ in range(HALF_OPEN + 5)]
    if time.monotonic() - begun < SETUP_S:  # else the first ones were forgotten meanwhile
        assert answers == [201] * HALF_OPEN + [429] * 5
    assert begin(BANK) == 201
    deadline = time.monotonic() + PATIENCE_S
    while begin(SHOP) != 201:
        assert time.monotonic() < deadline
        time.sleep(0.2)
