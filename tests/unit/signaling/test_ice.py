import pytest

from signaling.ice import MAX_CANDIDATES, Credentials, check_candidate, check_number
from signaling.refusal import Refused

CHROMIUM = (
    "candidate:1387637174 1 udp 2122260223 192.0.2.1 61764 typ host generation 0 ufrag EsAw "
    "network-id 1 network-cost 999"
)


@pytest.mark.parametrize(
    "text",
    [
        CHROMIUM,
        "candidate:0 1 UDP 2122252543 2a7f7f4e-6b3e-4a2c-8a0d-1f0f3f6a7a10.local 47311 typ host",
        "candidate:2 1 UDP 1686052863 203.0.113.7 47311 typ srflx raddr 0.0.0.0 rport 0",
        "candidate:4 1 TCP 2105458943 192.0.2.1 9 typ host tcptype active",
        "candidate:1 1 udp 2113937151 2001:db8::1 50000 typ host",
        "candidate:1 1 udp 2113937151 fe80::1%eth0 50000 typ host ",
        "a=candidate:1 0 udp 2113937151 192.0.2.1 50000 typ host",
        "1 1 udp 2113937151 192.0.2.1 50000 typ host",
    ],
)
def test_candidates_as_clients_write_them(text: str) -> None:
    check_candidate(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "candidate",
        "candidate:1 1 udp 1 192.0.2.1 50000",
        "candidate:1 1 udp 1 192.0.2.1 65536 typ host",
        "candidate:1 257 udp 1 192.0.2.1 5000 typ host",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ host generation",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ host\r\na=ice-lite",
        "candidate:1 1 udp 1 192.0.2.1/24 5000 typ host",
        "candidate:1 1 udp 1 ünïcode 5000 typ host",
        "candidate:1 1 udp 1 192.0.2.1 \u0665000 typ host",
        "candidate:1 1 udp 1 192.0.2.1 5000 typ host " + "x y " * 200,
    ],
)
def test_what_is_no_candidate(text: str) -> None:
    with pytest.raises(Refused, match="a candidate is none") as caught:
        check_candidate(text)
    assert (caught.value.code, caught.value.status) == ("bad_candidate", 400)


def test_a_candidate_of_another_generation() -> None:
    check_candidate(CHROMIUM, "EsAw")
    check_candidate(CHROMIUM.replace("ufrag EsAw ", ""), "other")
    with pytest.raises(Refused, match="ufrag 'EsAw'"):
        check_candidate(CHROMIUM, "other")


def test_how_many_are_read() -> None:
    check_number(MAX_CANDIDATES)
    with pytest.raises(Refused, match="at most 64"):
        check_number(MAX_CANDIDATES + 1)


def test_the_password_is_not_shown() -> None:
    assert "secret" not in repr(Credentials("abcd", "secret"))
