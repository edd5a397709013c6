import pytest

from relayctl.control.link import (
    CUSTOMER_TAG,
    ELSEWHERE,
    SERVICE_TAG,
    Carrier,
    Link,
    Vlan,
    carriers,
)
from relayctl.datapath.base import DatapathError


def link(index: int, name: str, vlan: Vlan | None = None) -> Link:
    return Link(index, name, bytes(6), True, 1500, vlan)


PLAIN = link(2, "eth0")
TAGGED = link(3, "eth0.10", Vlan(2, 10))
SERVICE = link(4, "eth0.200", Vlan(2, 200, SERVICE_TAG))
DOUBLE = link(5, "eth0.200.7", Vlan(4, 7))
TRIPLE = link(6, "deep", Vlan(5, 9))
LINKS = [PLAIN, TAGGED, SERVICE, DOUBLE, TRIPLE]


def test_who_carries_what() -> None:
    assert carriers(["eth0", "eth0.10", "eth0.200.7"], LINKS) == {
        "eth0": Carrier(2, 2),
        "eth0.10": Carrier(3, 2, (10, 0)),
        "eth0.200.7": Carrier(5, 2, (200, 7)),
    }


@pytest.mark.parametrize(
    ("name", "links", "said"),
    [
        pytest.param("eth1", LINKS, "there is none; `ip link` lists them", id="absent"),
        pytest.param("deep", LINKS, "more than two VLAN tags", id="three"),
        pytest.param("eth0.200", LINKS, "one tag has to be 802.1Q", id="one_service_tag"),
        pytest.param(
            "twice",
            [*LINKS, link(9, "twice", Vlan(3, 7, CUSTOMER_TAG))],
            "tags of type 0x8100, 0x8100; one tag has to be 802.1Q",
            id="two_customer_tags",
        ),
        pytest.param(
            "far", [link(9, "far", Vlan(ELSEWHERE, 7))], "another network namespace", id="elsewhere"
        ),
        pytest.param("zero", [PLAIN, link(9, "zero", Vlan(2, 0))], "priority tag", id="id_0"),
    ],
)
def test_what_cannot_be_expressed_is_refused(name: str, links: list[Link], said: str) -> None:
    with pytest.raises(DatapathError) as caught:
        carriers([name], links)
    assert str(caught.value).startswith(f"interface.name = '{name}': ")
    assert said in str(caught.value)
