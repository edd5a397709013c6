import json

from relayctl.wire import call_id
from relayctl.wire.route_token import Key, open_token
from tests.bench_signaling.stub import CAPACITY, Stub

KEY = Key(1, bytes(range(32)))


def body(reply: bytes) -> dict[str, object]:
    head, _, content = reply.partition(b"\r\n\r\n")
    assert f"content-length: {len(content)}".encode() in head
    found: dict[str, object] = json.loads(content)
    return found


def test_every_offer_gets_an_id_of_its_own_that_opens() -> None:
    stub = Stub(("127.0.0.1", 5000), 7, KEY)
    begun = [body(stub.create()) for _ in range(3)]
    ids = [call_id.parse(str(each["id"])) for each in begun]
    assert len({each.token for each in ids}) == 3
    route = open_token({KEY.id: KEY}, ids[0].token.encode())
    assert (route.cluster, route.host, route.port) == (7, 0x7F000001, 5000)
    assert str(begun[0]["answer"]).startswith("v=0\r\n")


def test_it_is_ready() -> None:
    assert body(Stub(("127.0.0.1", 5000), 7, KEY).ready())["capacity"] == CAPACITY
