from relayctl.wire import route_token, stun
from tests.bench import flow_opening
from tests.bench.flow_opening import KEY, TOKEN_AT
from tests.bench.wire import PAYLOAD, STAMP


def test_the_token_stands_where_the_generator_writes_it() -> None:
    request = flow_opening.binding_request(b"T" * 24)
    assert request[TOKEN_AT : TOKEN_AT + 24] == b"T" * 24
    assert STAMP + 8 <= 20  # inside the transaction id


def test_a_binding_request_is_one_that_the_relay_reads() -> None:
    (token,) = flow_opening.tokens(1)
    request = flow_opening.binding_request(token)
    assert stun.parse_binding_request(request).local_ufrag == token
    assert PAYLOAD - 4 < len(request) <= PAYLOAD


def test_tokens_differ_and_name_the_endpoint() -> None:
    tokens = flow_opening.tokens(50, first=7)
    assert len(set(tokens)) == 50
    routes = {route_token.open_token({KEY.id: KEY}, token)[:3] for token in tokens}
    assert routes == {(flow_opening.CLUSTER, 0x0A020002, 5000)}


def test_the_hex_ufrag_says_address_and_port() -> None:
    assert flow_opening.hex_ufrag() == b"0a0200021388" + b"0" * 12


def test_a_shared_token_is_shown_by_neighbours() -> None:
    assert flow_opening.shared([b"a", b"b"], 2) == [b"a", b"a", b"b", b"b"]
