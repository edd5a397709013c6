from tests.unit.transceiver.audio.test_opus import frames, voice
from transceiver.audio.opus import Decoder, Encoder
from transceiver.backends.echo import FEC_S, RATE, Echo, Mode
from transceiver.rtp import Packet


class Outlet:
    def __init__(self) -> None:
        self.sent: list[tuple[bytes, int, bool]] = []

    def send(self, payload: bytes, timestamp: int, marker: bool) -> None:
        self.sent.append((payload, timestamp, marker))


def packet(payload: bytes, n: int = 0, marker: bool = False) -> Packet:
    return Packet(111, n, n * 960, 1, payload, marker)


def test_answers_each_packet_with_sound() -> None:
    outlet = Outlet()
    echo, encoder, decoder = Echo(outlet), Encoder(RATE), Decoder(RATE)
    for n, frame in enumerate(frames(voice(0.2))):
        echo.receive(packet(encoder.encode(frame), n, marker=n == 0), True)
    assert [stamp for _, stamp, _ in outlet.sent] == [n * 960 for n in range(10)]
    assert [marker for _, _, marker in outlet.sent] == [True] + [False] * 9
    assert any(decoder.decode(payload).strip(b"\0") for payload, _, _ in outlet.sent)


def test_mirrors_in_opus_mode() -> None:
    outlet = Outlet()
    Echo(outlet, Mode.OPUS).receive(packet(b"\xf8whatever"), True)
    assert outlet.sent == [(b"\xf8whatever", 0, False)]


def test_late_packets_are_not_answered() -> None:
    outlet = Outlet()
    Echo(outlet, Mode.OPUS).receive(packet(b"\xf8"), False)
    assert not outlet.sent


def test_what_is_no_opus_is_counted() -> None:
    outlet = Outlet()
    echo = Echo(outlet)
    echo.receive(packet(b"\xff\xff\xff"), True)
    assert echo.undecodable == 1
    assert not outlet.sent


def test_says_nothing_while_paused_or_closed() -> None:
    outlet = Outlet()
    echo = Echo(outlet, Mode.OPUS)
    echo.pause()
    echo.receive(packet(b"\xf8"), True)
    assert not outlet.sent
    echo.resume()
    echo.receive(packet(b"\xf8"), True)
    assert len(outlet.sent) == 1
    echo.close()
    echo.receive(packet(b"\xf8"), True)
    assert len(outlet.sent) == 1


def test_loss_turns_fec_on_for_a_while() -> None:
    echo = Echo(Outlet())
    assert echo._codec is not None
    encoder = echo._codec[1]
    echo.loss(0.005, 100.0)
    assert not encoder.fec
    echo.loss(0.02, 101.0)
    assert encoder.fec
    echo.loss(0.0, 101.0 + FEC_S - 1)
    assert encoder.fec
    echo.loss(0.0, 101.0 + FEC_S)
    assert not encoder.fec
    Echo(Outlet(), Mode.OPUS).loss(0.5, 1.0)
