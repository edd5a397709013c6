from collections.abc import Callable
from json import dumps as json_text

import httpx
import pytest

from relayctl.inspect.daemon_reader import DaemonReader, entries
from relayctl.inspect.records import ReadError

CLIENT = ("198.51.100.7", 40000)
FLOW = {"client": "198.51.100.7:40000", "vip": "203.0.113.10:3478", "vip_id": 1}
NO_FLOW = httpx.Response(404, json={"error": {"code": "no_flow", "message": "no flow"}})


class Daemon:
    """Answers by method and path, and remembers what it was asked."""

    def __init__(self, answers: dict[str, Callable[[], httpx.Response]]) -> None:
        self.asked: list[str] = []
        self._answers = answers

    def __call__(self, request: httpx.Request) -> httpx.Response:
        self.asked.append(f"{request.method} {request.url.raw_path.decode()}")
        return self._answers.get(
            f"{request.method} {request.url.path}", lambda: httpx.Response(500)
        )()


def reader(daemon: Callable[[httpx.Request], httpx.Response]) -> DaemonReader:
    transport = httpx.MockTransport(daemon)
    return DaemonReader(httpx.Client(transport=transport, base_url="http://relay"))


def json(value: object, status: int = 200) -> Callable[[], httpx.Response]:
    return lambda: httpx.Response(status, json=value)


def test_lists() -> None:
    daemon = Daemon(
        {
            "GET /v1/status": json({"instance": "relay-a"}),
            "GET /v1/flows": json({"flows": [FLOW]}),
            "GET /v1/reasons": json({"reasons": [{"reason": "forward"}]}),
            "GET /v1/nexthops": json({"nexthops": [{"index": 1}]}),
        }
    )
    found = reader(daemon)
    assert found.status() == {"instance": "relay-a"}
    assert list(found.flows()) == [FLOW]
    assert found.reasons() == [{"reason": "forward"}]
    assert found.nexthops() == [{"index": 1}]


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_entries_that_arrive_in_pieces(size: int, count: int) -> None:
    flows = [
        {"client": f"198.51.100.{n}:1", "ssrc": None, "packets": {"up": n}} for n in range(count)
    ]
    text = json_text({"flows": flows})
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    assert list(entries(pieces)) == flows


def test_entries_that_break_off() -> None:
    text = json_text({"flows": [FLOW, FLOW]})
    for end in range(len(text) - 1):
        with pytest.raises(ReadError, match="broke off"):
            list(entries([text[:end]]))


def test_flows_come_one_by_one() -> None:
    flows = reader(Daemon({"GET /v1/flows": json({"flows": [FLOW, FLOW]})})).flows()
    assert next(flows) == FLOW


def test_census() -> None:
    flow = FLOW | {"state": "new", "cluster": 7}
    census = reader(Daemon({"GET /v1/flows": json({"flows": [flow]})})).census()
    assert (census.total, census.clusters) == (1, {7: 1})


def test_refused_flows() -> None:
    with pytest.raises(ReadError, match="answered 500"):
        list(reader(Daemon({})).flows())


def test_flow_with_one_vip() -> None:
    daemon = Daemon({"GET /v1/flows/198.51.100.7:40000": json(FLOW)})
    assert reader(daemon).flow(CLIENT, "203.0.113.10:3478") == [FLOW]
    assert daemon.asked == ["GET /v1/flows/198.51.100.7%3A40000?vip=203.0.113.10%3A3478"]


def test_flow_with_any_vip_asks_for_each() -> None:
    daemon = Daemon(
        {
            "GET /v1/status": json({"vips": [{"id": 1}, {"id": 2}]}),
            "GET /v1/flows/198.51.100.7:40000": json(FLOW),
        }
    )
    assert reader(daemon).flow(CLIENT, None) == [FLOW, FLOW]
    assert daemon.asked[1].endswith("?vip=1")
    assert daemon.asked[2].endswith("?vip=2")


def test_no_such_flow() -> None:
    daemon = Daemon(
        {
            "GET /v1/flows/198.51.100.7:40000": lambda: NO_FLOW,
            "DELETE /v1/flows/198.51.100.7:40000": lambda: NO_FLOW,
        }
    )
    assert reader(daemon).flow(CLIENT, "1") == []
    assert reader(daemon).delete(CLIENT, None) is False


def test_delete() -> None:
    daemon = Daemon({"DELETE /v1/flows/198.51.100.7:40000": lambda: httpx.Response(204)})
    assert reader(daemon).delete(CLIENT, "1")
    assert daemon.asked == ["DELETE /v1/flows/198.51.100.7%3A40000?vip=1"]


def test_the_daemons_own_words_are_passed_on() -> None:
    busy = json({"error": {"code": "busy", "message": "try again"}}, 503)
    daemon = Daemon({"DELETE /v1/flows/198.51.100.7:40000": busy})
    with pytest.raises(ReadError, match=r"^try again$"):
        reader(daemon).delete(CLIENT, "1")


def test_an_answer_without_words() -> None:
    with pytest.raises(ReadError, match="answered 500 to /v1/status"):
        reader(Daemon({})).status()


def test_a_daemon_that_dies_meanwhile() -> None:
    def dies(request: httpx.Request) -> httpx.Response:
        raise httpx.ReadError("connection reset", request=request)

    with pytest.raises(ReadError, match="did not answer GET /v1/flows: connection reset"):
        list(reader(dies).flows())
