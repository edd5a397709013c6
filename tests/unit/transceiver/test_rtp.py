import contextlib
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transceiver.rtp import FRAME, Packet, Reception, Reject, RtpError, build, parse

U16 = st.integers(0, 0xFFFF)
U32 = st.integers(0, 0xFFFFFFFF)
PACKETS = st.builds(
    Packet, st.integers(0, 127), U16, U32, U32, st.binary(max_size=200), st.booleans()
)
HEADER = struct.pack("!BBHII", 0x80, 111, 7, 960, 0xAABBCCDD)


@given(PACKETS)
def test_parse_inverts_build(packet: Packet) -> None:
    assert parse(build(packet)) == packet


@given(PACKETS, st.lists(U32, max_size=15), st.binary(max_size=40), st.integers(0, 20))
def test_skips_csrcs_extension_and_padding(
    packet: Packet, csrcs: list[int], extension: bytes, padding: int
) -> None:
    extension = extension[: len(extension) // 4 * 4]
    data = bytearray(build(packet))
    data[0] |= len(csrcs) | 0x10 | (0x20 if padding else 0)
    head = struct.pack("!HH", 0xBEDE, len(extension) // 4) + extension
    tail = bytes(padding - 1) + bytes([padding]) if padding else b""
    sources = struct.pack(f"!{len(csrcs)}I", *csrcs)
    assert parse(bytes(data[:12]) + sources + head + packet.payload + tail) == packet


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param(HEADER[:11], Reject.TRUNCATED, id="short_header"),
        pytest.param(b"\x40" + HEADER[1:], Reject.BAD_VERSION, id="version_1"),
        pytest.param(b"\x8f" + HEADER[1:], Reject.TRUNCATED, id="csrcs_past_end"),
        pytest.param(b"\x90" + HEADER[1:], Reject.TRUNCATED, id="no_extension_header"),
        pytest.param(
            b"\x90" + HEADER[1:] + b"\xbe\xde\0\2" + bytes(4), Reject.TRUNCATED, id="cut_extension"
        ),
        pytest.param(b"\xa0" + HEADER[1:] + b"\0", Reject.BAD_PADDING, id="padding_0"),
        pytest.param(b"\xa0" + HEADER[1:] + b"\2", Reject.BAD_PADDING, id="padding_past_payload"),
        pytest.param(b"\xa0" + HEADER[1:], Reject.BAD_PADDING, id="padding_in_header"),
    ],
)
def test_rejects(data: bytes, reason: Reject) -> None:
    with pytest.raises(RtpError) as caught:
        parse(data)
    assert caught.value.reason is reason


@given(st.binary(max_size=64) | st.binary(max_size=64).map(lambda b: HEADER + b))
def test_raises_only_rtp_error(data: bytes) -> None:
    with contextlib.suppress(RtpError):
        parse(data)


def receive(numbers: list[int]) -> Reception:
    reception = Reception()
    for at, number in enumerate(numbers):
        reception.add(number & 0xFFFF, number * FRAME & 0xFFFFFFFF, at * 0.02)
    return reception


@given(U16, st.integers(2, 300), st.data())
def test_counts_each_missing_packet_across_the_wrap(
    first: int, size: int, data: st.DataObject
) -> None:
    inner = (
        st.sets(st.integers(1, size - 2), max_size=min(size - 2, 40))
        if size > 2
        else st.just(set())
    )
    missing: set[int] = data.draw(inner)
    reception = receive([first + n for n in range(size) if n not in missing])
    assert reception.expected == size
    assert reception.lost == len(missing)
    assert reception.highest == first + size - 1


def test_a_late_packet_is_not_newest_and_not_lost() -> None:
    reception = Reception()
    fresh = [reception.add(n, n * FRAME, n * 0.02) for n in (10, 12, 11, 13)]
    assert fresh == [True, True, False, True]
    assert reception.lost == 0


def test_a_far_jump_is_believed_when_it_goes_on() -> None:
    reception = receive([10, 11])
    assert not reception.add(30000, 0, 1.0)
    assert reception.highest == 11
    assert reception.add(30001, FRAME, 1.02)
    assert reception.highest == 30001
    assert reception.lost == 0


def test_even_arrival_has_no_jitter_and_uneven_has() -> None:
    assert receive(list(range(100))).jitter < 1e-6
    reception = Reception()
    for n in range(200):
        reception.add(n, n * FRAME, n * 0.02 + (0.01 if n % 2 else 0))
    assert 400 < reception.jitter < 500  # 10 ms are 480 ticks


def test_a_pause_is_no_jitter() -> None:
    reception = receive([1, 2])
    reception.add(3, (3 + 500) * FRAME, 10.04)
    assert reception.jitter < 10


@pytest.mark.parametrize("late_s", [0.0, 0.3, 0.9])
def test_the_packet_that_ends_a_pause_says_nothing_of_jitter(late_s: float) -> None:
    reception = receive(list(range(50)))
    before = reception.jitter
    now, ticks = 49 * 0.02, 49 * FRAME
    for n in range(50, 60):  # frames of a discontinuous transmission, 400 ms apart
        now += 0.4 + (late_s if n % 2 else -late_s / 3)
        ticks += 20 * FRAME
        reception.add(n, ticks, now)
    assert reception.jitter == before


def test_losses_do_not_hide_jitter() -> None:
    reception = Reception()
    for n in range(0, 400, 2):
        reception.add(n, n * FRAME, n * 0.02 + (0.01 if n % 4 else 0))
    assert 400 < reception.jitter < 500


def test_jitter_outlives_a_wrap_and_a_jump_back_of_timestamps() -> None:
    reception, even = Reception(), Reception()
    for n in range(100):
        now = n * 0.02 + (0.005 if n % 2 else 0)
        reception.add(n, (2**32 - 50 * FRAME + n * FRAME) & 0xFFFFFFFF, now)
        even.add(n, n * FRAME, now)
    assert reception.jitter == even.jitter
    reception.add(100, 50 * FRAME, 20.0)  # a pause that the timestamps do not tell
    assert reception.jitter == even.jitter
    reception.add(101, 0, 20.0)
    assert reception.jitter == even.jitter


def test_a_far_jump_is_forgotten_when_the_sequence_goes_on() -> None:
    reception = receive([10, 11])
    reception.add(30000, 0, 1.0)
    reception.add(12, 12 * FRAME, 1.0)
    assert not reception.add(30001, 0, 1.0)
    assert reception.highest == 12
