"""What newcomers send: tokens as a transceiver mints them, repeated as browsers do."""

import secrets
from itertools import pairwise

from relayctl.wire.route_token import Key, open_token
from tests.lab.service_config import CLUSTER
from tests.siege.newcomers import RETRIES_S, WITHIN_S, token_for


def test_a_token_leads_to_its_endpoint() -> None:
    key = Key(1, secrets.token_bytes(32))
    route = open_token({1: key}, token_for(key, ("10.2.0.2", 5001)))
    assert (route.cluster, route.host, route.port) == (CLUSTER, 0x0A020002, 5001)


def test_each_newcomer_has_another_token() -> None:
    key = Key(1, secrets.token_bytes(32))
    assert len({token_for(key, ("10.2.0.2", 5001)) for _ in range(50)}) == 50


def test_repeats_wait_twice_as_long_each_and_end_in_time() -> None:
    waits = [after - before for before, after in pairwise(RETRIES_S)]
    assert [round(wait / waits[0]) for wait in waits] == [1, 2, 4, 8]
    assert RETRIES_S[-1] < WITHIN_S
