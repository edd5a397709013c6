import pytest

from tests.clients.ledger import Ledger


def book(*sequences: int) -> Ledger:
    ledger = Ledger()
    for at, sequence in enumerate(sequences):
        ledger.receive(sequence, at * 0.02)
    return ledger


@pytest.mark.parametrize(
    ("sequences", "received", "lost"),
    [
        pytest.param((), 0, 0, id="nothing"),
        pytest.param((7,), 1, 0, id="one"),
        pytest.param((7, 8, 9), 3, 0, id="whole"),
        pytest.param((7, 9, 12), 3, 3, id="holes"),
        pytest.param((65534, 65535, 0, 2), 4, 1, id="wraps"),
        pytest.param((0, 65535, 1), 3, 0, id="first_was_late"),
        pytest.param((7, 9, 8), 3, 0, id="late"),
    ],
)
def test_received_and_lost(sequences: tuple[int, ...], received: int, lost: int) -> None:
    ledger = book(*sequences)
    assert (ledger.received, ledger.lost) == (received, lost)


def test_late_and_double_packets() -> None:
    ledger = book(1, 3, 2, 3)
    assert ledger.reordered == 1
    assert ledger.duplicates == 1


def test_many_rounds_of_the_counter() -> None:
    ledger = book(*(n & 0xFFFF for n in range(65000, 265000) if n % 1000))
    assert ledger.received == 199_800
    assert ledger.lost == 199  # the very first is not missed


def test_gaps() -> None:
    ledger = Ledger()
    for now in (1.0, 1.02, 1.5, 1.52):
        ledger.receive(int(now * 100), now)
    assert ledger.gaps_until(1.53) == pytest.approx((0.48, 0.48))
    ledger.mark(1.53)
    assert ledger.gaps_until(1.53) == pytest.approx((0.48, 0.01))
    ledger.receive(200, 1.72)
    assert ledger.gaps_until(1.73) == pytest.approx((0.48, 0.2))
    assert ledger.gaps_until(3.72) == pytest.approx((2.0, 2.0))


def test_no_gap_without_packets() -> None:
    assert Ledger().gaps_until(100.0) == (0.0, 0.0)
