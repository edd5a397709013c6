import dataclasses

import pytest

from tests.figures.kernel_share import Books

BOOKS = Books(
    relay=(12, 11),
    flow=(12, 11),
    wire=(12, 11),
    rtp_wire=(9, 9),
    rtp_client=(9, 9),
    rtp_transceiver=(9, 9),
)


def test_agree() -> None:
    assert BOOKS.agree


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Books)])
def test_one_that_differs_is_enough(name: str) -> None:
    assert not dataclasses.replace(BOOKS, **{name: (9, 8)}).agree
