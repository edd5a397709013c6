import struct

from tests.clients.speech_stream import SpeechStream

PAYLOADS = (b"one", b"two", b"three", b"four")


def make() -> SpeechStream:
    return SpeechStream(PAYLOADS, 0xABCD, first_sequence=65535, first_timestamp=2**32 - 960)


def echo(packet: bytes, sequence: int, extension: bytes = b"") -> bytes:
    """The payload of `packet` under the server's own header."""
    head = struct.pack("!BBHII", 0x90 if extension else 0x80, 111, sequence, 0, 99)
    return head + extension + packet[12:]


def test_packets_in_order_and_round_again() -> None:
    stream = make()
    packets = [stream.next_packet() for _ in range(5)]
    assert [packet[12:] for packet in packets] == [*PAYLOADS, b"one"]
    headers = [struct.unpack("!BBHII", packet[:12]) for packet in packets]
    assert [header[2] for header in headers] == [65535, 0, 1, 2, 3]
    assert [header[3] for header in headers[:2]] == [2**32 - 960, 0]
    assert {header[4] for header in headers} == {0xABCD}


def test_accounts_for_both_directions() -> None:
    """Five go up, the second is lost there; the answer to the third is lost on its way down."""
    stream = make()
    packets = [stream.next_packet() for _ in range(5)]
    answered = [echo(packets[n], 1000 + at) for at, n in enumerate([0, 2, 3, 4])]
    del answered[1]
    for packet in answered:
        stream.receive(packet, 1.0)
    report = stream.report(1.0)
    assert report["sent"] == 5
    assert report["received"] == 3
    assert report["lost"] == {"down": 1, "up": 1, "up_reported": None}
    # "one" came back for the fifth packet, since it went out twice: nothing is known of the first
    assert report["echoed"]["received"] == 2


def test_whose_payload_comes_back() -> None:
    stream = make()
    packets = [stream.next_packet() for _ in range(4)]
    stream.receive(echo(packets[0], 7, extension=b"\xbe\xde\x00\x01abcd"), 1.0)
    stream.receive(echo(b"x" * 12 + b"stranger", 8), 1.0)
    stream.receive(echo(packets[3], 9), 1.0)
    assert stream.report(1.0)["echoed"] == {"received": 2, "lost": 2}


def test_loss_that_the_server_reports() -> None:
    stream = make()
    block = struct.pack("!IB3sIIII", 0xABCD, 0, (17).to_bytes(3, "big"), 0, 0, 0, 0)
    stream.receive_report(struct.pack("!BBHI", 0x81, 201, 7, 1) + block)
    assert stream.report(1.0)["lost"]["up_reported"] == 17
    stream.receive_report(
        struct.pack("!BBHI20x", 0x81, 200, 12, 1) + block.replace(b"\x11", b"\x12")
    )
    assert stream.report(1.0)["lost"]["up_reported"] == 18
    stream.receive_report(struct.pack("!BBHI", 0x80, 201, 1, 1))
    assert stream.report(1.0)["lost"]["up_reported"] == 18
