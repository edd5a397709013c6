import pytest

from tests.figures.hostile import add_up

COUNTED = {
    "pass_not_ours": 3,  # an ARP request or two
    "drop_no_flow": 4,
    "punt_first": 5,
    "punt_orphan": 1,
    "slow_forged": 4,
    "slow_orphan": 1,
    "socket_received": 5,
    "socket_drops": 1,
}


def test_adds_up() -> None:
    assert add_up(COUNTED, 10)


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"drop_no_flow": 3}, id="the program missed one"),
        pytest.param({"punt_first": 4, "drop_no_flow": 5}, id="read more than was handed up"),
        pytest.param({"socket_drops": 0}, id="one vanished on the way up"),
        pytest.param({"slow_forged": 3}, id="the packet process missed one"),
    ],
)
def test_does_not_add_up(wrong: dict[str, int]) -> None:
    assert not add_up(COUNTED | wrong, 10)
