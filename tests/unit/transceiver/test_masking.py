import pytest

from transceiver.masking import mask


@pytest.mark.parametrize(
    ("host", "masked"),
    [("198.51.100.77", "198.51.100.0/24"), ("2001:db8:1:2::3", "2001:db8:1::/48")],
)
def test_masks_the_host(host: str, masked: str) -> None:
    assert mask(host) == masked
