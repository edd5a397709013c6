import math
from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from opuslib_next import APPLICATION_RESTRICTED_LOWDELAY, APPLICATION_VOIP

from tests.unit.transceiver.audio import spoken
from tests.unit.transceiver.audio.spoken import packet
from transceiver.audio.opus import RATES, CodecError, Decoder
from transceiver.audio.order import WAIT_S
from transceiver.audio.uplink import CONCEALED, LEAD, MAX_SILENCE, Kind, Sound, Uplink
from transceiver.rtp import CLOCK_RATE, FRAME, Packet

RATE = 24_000
FRAME_S = 0.02
D, R, C, S = Kind.DECODED, Kind.RECOVERED, Kind.CONCEALED, Kind.SILENCE
GARBAGE = b"\xff\xff\xff"  # code 3 with padding that never ends


def ticks(sound: Sound, rate: int = RATE) -> int:
    return len(sound.samples) // 2 * (CLOCK_RATE // rate)


def check_unbroken(sounds: list[Sound], rate: int = RATE) -> None:
    for before, sound in pairwise(sounds):
        assert sound.timestamp == before.timestamp + ticks(before, rate)


class Caller:
    """A client that numbers packets itself; its clock is the sum of what it sent."""

    def __init__(self, uplink: Uplink, sequence: int = 0, timestamp: int = 0) -> None:
        self.uplink = uplink
        self.sequence = sequence
        self.timestamp = timestamp
        self.now = 100.0
        self.sounds: list[Sound] = []

    def say(self, *payloads: bytes, length: int = FRAME, lose: bool = False) -> list[Sound]:
        """Send packets of `length` ticks each, or only count them; what came of it."""
        at = len(self.sounds)
        for payload in payloads:
            if not lose:
                while self.uplink.deadline <= self.now:
                    self.sounds += self.uplink.timer(self.uplink.deadline)
                sent = packet(self.sequence, self.timestamp, payload)
                self.sounds += self.uplink.receive(sent, self.now)
            self.sequence += 1
            self.pause(length)
        return self.sounds[at:]

    def lose(self, *payloads: bytes, length: int = FRAME) -> None:
        self.say(*payloads, length=length, lose=True)

    def pause(self, length: int) -> None:
        self.timestamp += length
        self.now += length / CLOCK_RATE

    def wait(self) -> list[Sound]:
        """Let the open gap come due."""
        more = self.uplink.timer(self.uplink.deadline)
        self.sounds += more
        return more


@pytest.fixture
def caller() -> Caller:
    return Caller(Uplink(RATE))


def kinds(sounds: list[Sound]) -> list[tuple[Kind, int]]:
    """(kind, ms) of each."""
    return [(sound.kind, ticks(sound) * 1000 // CLOCK_RATE) for sound in sounds]


@pytest.mark.parametrize("rate", RATES)
def test_in_order_it_is_the_decoder_and_each_packet_leaves_at_its_arrival(rate: int) -> None:
    uplink, decoder = Uplink(rate), Decoder(rate)
    for n, payload in enumerate(spoken.packets()):
        sounds = uplink.receive(packet(n, payload=payload), n * FRAME_S)
        assert sounds == [Sound(decoder.decode(payload), n * FRAME, D)]
        assert uplink.deadline == math.inf


def test_sequence_and_timestamp_wrap(caller: Caller) -> None:
    caller.sequence, caller.timestamp = 65530, 2**32 - 3 * FRAME
    caller.say(*spoken.packets()[:12])
    assert kinds(caller.sounds) == [(D, 20)] * 12
    assert caller.sounds[-1].timestamp == 2**32 + 8 * FRAME
    check_unbroken(caller.sounds)


def test_a_packet_overtaken_within_the_wait_costs_nothing(caller: Caller) -> None:
    a, b, c = spoken.packets()[60:63]
    caller.say(a)
    uplink, now = caller.uplink, caller.now
    assert uplink.receive(packet(2, payload=c), now) == []
    sounds = uplink.receive(packet(1, payload=b), now + WAIT_S / 2)
    decoder = Decoder(RATE)
    decoder.decode(a)
    assert [sound.samples for sound in sounds] == [decoder.decode(b), decoder.decode(c)]
    assert (uplink.recovered, uplink.concealed, uplink.late) == (0, 0, 0)


def test_a_lost_packet_is_recovered_from_the_next(caller: Caller) -> None:
    a, b, c, d = spoken.packets(fec=True)[60:64]
    caller.say(a)
    caller.lose(b)
    assert caller.say(c) == []
    assert kinds(caller.wait()) == [(R, 20), (D, 20)]
    assert kinds(caller.say(d)) == [(D, 20)]
    assert (caller.uplink.recovered, caller.uplink.concealed) == (1, 0)
    check_unbroken(caller.sounds)


def test_without_fec_data_the_repair_is_called_concealment(caller: Caller) -> None:
    a, b, c = spoken.packets(fec=False)[60:63]
    caller.say(a)
    caller.lose(b)
    caller.say(c)
    assert kinds(caller.wait()) == [(C, 20), (D, 20)]
    assert (caller.uplink.recovered, caller.uplink.concealed) == (0, 1)


def test_of_several_lost_packets_the_next_restores_the_last_one(caller: Caller) -> None:
    some = spoken.packets(fec=True)[60:66]
    caller.say(some[0])
    caller.lose(*some[1:4])
    caller.say(some[4])
    assert kinds(caller.wait()) == [(C, 20), (C, 20), (R, 20), (D, 20)]
    check_unbroken(caller.sounds)


@pytest.mark.parametrize("fec", [False, True])
def test_after_five_frames_a_lost_stretch_is_silent(caller: Caller, fec: bool) -> None:
    some = spoken.packets(fec=fec)[60:100]
    caller.say(some[0])
    caller.lose(*some[1:31])
    caller.say(some[31])
    tail: list[tuple[Kind, int]] = [(R, 20)] if fec else []
    silent = 600 - 100 - 20 * len(tail)
    assert kinds(caller.wait()) == [*[(C, 20)] * 5, (S, silent), *tail, (D, 20)]
    assert caller.uplink.silence_ms == silent
    check_unbroken(caller.sounds)


def test_a_pause_is_silence_of_its_length_at_once(caller: Caller) -> None:
    a, b = spoken.packets(fec=True)[60:62]
    caller.say(a)
    caller.pause(19_200)
    assert kinds(caller.say(b)) == [(S, 400), (D, 20)]
    assert caller.uplink.silence_ms == 400
    assert (caller.uplink.recovered, caller.uplink.concealed) == (0, 0)
    check_unbroken(caller.sounds)


def test_long_silence_comes_in_pieces_that_share_one_second(caller: Caller) -> None:
    a, b = spoken.packets()[60:62]
    caller.say(a)
    caller.pause(MAX_SILENCE - FRAME)
    *silence, last = caller.say(b)
    assert [sound.kind for sound in silence] == [S] * 120
    assert len({id(sound.samples) for sound in silence[:-1]}) == 1
    assert not any(any(sound.samples) for sound in silence)
    assert last.timestamp == MAX_SILENCE
    check_unbroken(caller.sounds)


def test_a_pause_above_the_cap_is_a_jump(caller: Caller) -> None:
    a, b = spoken.packets()[60:62]
    caller.say(a)
    caller.pause(MAX_SILENCE + 120)
    assert caller.say(b)[0].timestamp == FRAME + MAX_SILENCE + 120
    assert kinds(caller.sounds) == [(D, 20), (D, 20)]
    assert caller.uplink.silence_ms == 120_002


def test_a_pause_and_a_loss_together(caller: Caller) -> None:
    a, b, c = spoken.packets(fec=True)[60:63]
    caller.say(a)
    caller.lose(b)
    caller.pause(19_200)
    caller.say(c)
    assert kinds(caller.wait()) == [(S, 400), (R, 20), (D, 20)]
    check_unbroken(caller.sounds)


def test_a_loss_that_took_no_time_repairs_nothing(caller: Caller) -> None:
    a, b = spoken.packets()[60:62]
    caller.say(a)
    caller.lose(b"", length=0)
    caller.say(b)
    assert kinds(caller.wait()) == [(D, 20)]


def test_timestamps_that_jump_ahead_of_the_clock_are_no_silence(caller: Caller) -> None:
    a, b, c = spoken.packets()[60:63]
    caller.say(a)
    caller.timestamp += LEAD + FRAME
    assert kinds(caller.say(b)) == [(D, 20)]
    assert kinds(caller.say(c)) == [(D, 20)]
    check_unbroken(caller.sounds)


@pytest.mark.parametrize("jump", [CLOCK_RATE, FRAME])
def test_timestamps_that_run_too_fast_are_soon_seen_through(caller: Caller, jump: int) -> None:
    for _ in range(1000):
        caller.say(GARBAGE)  # decodes fastest
        caller.timestamp += jump
    assert LEAD - jump <= caller.uplink.silence_ms * CLOCK_RATE // 1000 <= LEAD
    assert kinds(caller.sounds)[-50:] == [(C, 20)] * 50
    check_unbroken(caller.sounds)


def test_a_silent_hour_saves_up_no_silence(caller: Caller) -> None:
    a, b, c = spoken.packets()[60:63]
    caller.say(a)
    caller.now += 3600.0
    caller.say(b)
    caller.timestamp += 2 * LEAD + 2 * FRAME
    assert kinds(caller.say(c)) == [(D, 20)]


def test_a_pause_after_a_delayed_packet_is_whole(caller: Caller) -> None:
    a, b, c = spoken.packets()[60:63]
    caller.say(a)
    caller.now += 3.0
    caller.say(b)
    caller.now -= 3.0
    caller.pause(5 * CLOCK_RATE)
    assert kinds(caller.say(c)) == [(S, 1000)] * 5 + [(D, 20)]


def test_timestamps_that_go_back_just_go_on(caller: Caller) -> None:
    a, b, c = spoken.packets()[60:63]
    caller.say(a)
    caller.timestamp = 0xC0FFEE00
    caller.say(b, c)
    assert kinds(caller.sounds) == [(D, 20)] * 3
    check_unbroken(caller.sounds)


def test_timestamps_off_by_less_than_a_frame_unit_slip_and_settle(caller: Caller) -> None:
    for n in range(200):  # one tick too many in each packet
        caller.say(spoken.packets()[n], length=FRAME + 1)
    check_unbroken(caller.sounds)
    said = sum(map(ticks, caller.sounds))
    assert 0 <= caller.timestamp - said <= 120
    assert caller.uplink.silence_ms == 2  # 2.5 ms, once


def test_a_late_packet_is_dropped_and_counted(caller: Caller) -> None:
    a, b, c = spoken.packets()[60:63]
    caller.say(a)
    caller.lose(b)
    caller.say(c)
    caller.wait()
    assert caller.uplink.receive(packet(1, payload=b), caller.now) == []
    assert caller.uplink.receive(packet(2, payload=c), caller.now) == []
    uplink = caller.uplink
    assert (uplink.late, uplink.duplicates, uplink.foreign, uplink.overflows) == (1, 1, 0, 0)


def test_a_burst_after_a_stall_is_all_there(caller: Caller) -> None:
    caller.say(spoken.packets()[0])
    sounds = []
    for n, payload in enumerate(spoken.packets()[1:150], 1):
        sounds += caller.uplink.receive(packet(n, payload=payload), 103.0)
    assert kinds(sounds) == [(D, 20)] * 149


@pytest.mark.parametrize("payload", [GARBAGE, b"\x03"])
def test_what_is_no_opus_is_concealed(caller: Caller, payload: bytes) -> None:
    with pytest.raises(CodecError):
        Decoder(RATE).decode(payload)
    some = spoken.packets()[60:64]
    caller.say(*some[:2], payload, *some[2:])
    assert kinds(caller.sounds) == [(D, 20), (D, 20), (C, 20), (D, 20), (D, 20)]
    assert caller.uplink.undecodable == 1
    check_unbroken(caller.sounds)


def test_what_is_no_opus_is_taken_for_as_long_as_the_packet_before(caller: Caller) -> None:
    caller.say(spoken.packets(ms=60)[20], GARBAGE, length=3 * FRAME)
    assert kinds(caller.sounds) == [(D, 60), (C, 60)]


def test_a_call_of_nothing_but_garbage_lives(caller: Caller) -> None:
    caller.say(*[GARBAGE] * 50)
    assert caller.uplink.undecodable == 50
    check_unbroken(caller.sounds)


def test_fec_data_behind_a_loss_that_libopus_refuses_is_concealed(caller: Caller) -> None:
    some = spoken.packets()[60:62]
    caller.say(*some)
    caller.lose(GARBAGE)
    caller.say(GARBAGE)
    assert kinds(caller.wait()) == [(C, 20), (C, 20)]


def test_padding_alone_takes_a_number_and_no_time(caller: Caller) -> None:
    a, b, c = spoken.packets()[60:63]
    caller.say(a)
    caller.say(b"", length=0)
    assert kinds(caller.say(b)) == [(D, 20)]
    caller.lose(c)
    caller.say(b"", length=0)
    caller.say(a)
    assert kinds(caller.wait()) == [(C, 20), (D, 20)]
    caller.pause(FRAME)
    assert kinds(caller.say(b)) == [(S, 20), (D, 20)]


def test_a_restarted_sender_goes_on_where_it_was(caller: Caller) -> None:
    caller.say(*spoken.packets()[60:70])
    caller.sequence, caller.timestamp = 40_000, 0x12345678
    restarted = caller.say(*spoken.packets()[70:80])
    assert kinds(restarted) == [(D, 20)] * 10
    assert caller.uplink.resyncs == 1
    check_unbroken(caller.sounds)


def test_another_source_goes_on_and_the_clock_tells_the_pause(caller: Caller) -> None:
    a, b = spoken.packets()[60:62]
    caller.say(a)
    sounds = caller.uplink.receive(packet(9, 5, b, ssrc=8), caller.now)
    assert kinds(sounds) == [(D, 20)]
    later = caller.uplink.receive(packet(4000, 999_999, a, ssrc=9), caller.now + 2.02)
    assert kinds(later) == [(S, 1000), (S, 1000), (D, 20)]
    check_unbroken([*caller.sounds, *sounds, *later])


def test_sources_that_say_nothing_take_the_time_that_passes(caller: Caller) -> None:
    caller.say(spoken.packets()[60])
    sounds = []
    for ssrc in (8, 9, 10):
        sounds += caller.uplink.receive(packet(9, 5, b"", ssrc=ssrc), caller.now + 1.0)
    assert kinds(sounds) == [(S, 1000)]


def test_a_loss_in_less_than_a_frame_unit_repairs_nothing(caller: Caller) -> None:
    caller.say(spoken.packets()[60])
    caller.lose(b"", length=119)
    caller.say(spoken.packets()[61])
    assert kinds(caller.wait()) == [(D, 20)]


def test_another_source_starts_with_a_fresh_decoder(caller: Caller) -> None:
    caller.say(*spoken.packets()[60:70])
    fresh = Decoder(RATE)
    for n, payload in enumerate(spoken.packets()[100:105]):
        (sound,) = caller.uplink.receive(packet(n, payload=payload, ssrc=8), caller.now)
        assert sound.samples == fresh.decode(payload)


@pytest.mark.parametrize("ms", [2.5, 5, 10, 20, 40, 60, 80, 100, 120])
def test_packets_of_any_length_one_lost(caller: Caller, ms: float) -> None:
    some = spoken.of_libopus(ms, APPLICATION_VOIP)[-8:]
    length = round(ms * 48)
    caller.say(*some[:4], length=length)
    caller.lose(some[4], length=length)
    caller.say(*some[5:], length=length)
    caller.wait()
    check_unbroken(caller.sounds)
    assert sum(map(ticks, caller.sounds)) == 8 * length
    repaired = [sound for sound in caller.sounds if sound.kind is not D]
    assert sum(ticks(sound) for sound in repaired if sound.kind is C) == min(length, CONCEALED)
    assert caller.uplink.late == 0


def test_a_change_of_length_is_seen_in_the_timestamps(caller: Caller) -> None:
    long, short = spoken.packets(ms=60), spoken.packets(ms=20)
    caller.say(*short[60:62])
    caller.lose(*long[20:22], length=3 * FRAME)
    caller.say(long[22], length=3 * FRAME)
    assert kinds(caller.wait()) == [(C, 60), (C, 40), (S, 20), (D, 60)]


def test_dtx_frames_sound_and_pauses_between_them_are_silent(caller: Caller) -> None:
    caller.say(*spoken.packets()[60:62])
    toc = spoken.packets()[61][0] & 0xFC
    for dtx in (bytes([toc]), bytes([toc | 1]), bytes([toc | 3, 1])):  # empty frames of codes 0-3
        caller.say(dtx, length=FRAME)
    assert caller.uplink.undecodable == 0
    assert (S, 400) not in kinds(caller.sounds)
    caller.pause(19_200)
    caller.say(bytes([toc]))
    assert kinds(caller.sounds)[-2:] == [(S, 400), (D, 20)]
    check_unbroken(caller.sounds)


def test_stereo_is_heard_as_mono(caller: Caller) -> None:
    stereo = spoken.of_libopus(20, APPLICATION_VOIP, channels=2)
    assert stereo[30][0] & 4
    caller.say(*stereo)
    assert kinds(caller.sounds) == [(D, 20)] * len(stereo)
    heard = np.frombuffer(b"".join(sound.samples for sound in caller.sounds), "<i2")
    said = np.frombuffer(spoken.pcm(2.0, 2), "<i2").reshape(-1, 2).mean(axis=1)
    assert np.std(heard) == pytest.approx(np.std(said), rel=0.2)


def test_packets_without_silk_are_concealed(caller: Caller) -> None:
    celt = spoken.of_libopus(20, APPLICATION_RESTRICTED_LOWDELAY)[40:44]
    caller.say(celt[0])
    caller.lose(celt[1])
    caller.say(celt[2])
    assert kinds(caller.wait()) == [(C, 20), (D, 20)]


# What becomes of speech


def error(sounds: list[Sound], kind: Kind, whole: list[npt.NDArray[np.float64]]) -> float:
    """Distance of the frames of `kind` from the lossless decode, silence being 1."""
    at = {sound.timestamp // FRAME: sound.samples for sound in sounds if sound.kind is kind}
    wanted = np.concatenate([whole[n] for n in at])
    got = np.frombuffer(b"".join(at.values()), "<i2").astype(np.float64)
    return float(np.linalg.norm(got - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize(("fec", "kind", "limit"), [(True, R, 0.4), (False, C, 1.0)])
def test_repaired_speech_is_nearer_to_what_was_said_than_silence(
    fec: bool, kind: Kind, limit: float
) -> None:
    payloads = spoken.packets(fec=fec, seconds=15.0)
    decoder = Decoder(RATE)
    whole = [np.frombuffer(decoder.decode(p), "<i2").astype(np.float64) for p in payloads]
    caller = Caller(Uplink(RATE))
    for n, payload in enumerate(payloads):
        caller.say(payload, lose=n % 20 == 7)
    check_unbroken(caller.sounds)
    measured = error(caller.sounds, kind, whole)
    print(f"error of {kind} frames: {measured:.2f}")
    assert measured <= limit


# Whatever comes


@st.composite
def streams(draw: st.DrawFn) -> list[tuple[float, Packet, int]]:
    """(arrival, packet, ticks): lengths change, pauses, losses, copies, other orders, wraps."""
    sequence, timestamp = draw(st.integers(0, 0xFFFF)), draw(st.integers(0, 2**32 - 1))
    start, arrivals = timestamp, []
    for n in range(draw(st.integers(1, 40))):
        ms = draw(st.sampled_from((20, 20, 20, 10, 40, 60)))
        payload = spoken.packets(ms, draw(st.booleans()))[n % 60]
        sent = packet(sequence + n, timestamp, payload)
        for _ in range(draw(st.sampled_from((1, 1, 1, 1, 0, 0, 2)))):
            delay = draw(st.sampled_from((0, 0, 0, 5, 15, 25, 45, 100))) / 1000
            arrivals.append(((timestamp - start) / CLOCK_RATE + delay, sent, ms * 48))
        timestamp += ms * 48 + draw(st.sampled_from((0, 0, 0, 0, 960, 19_200, 60_000)))
    return sorted(arrivals, key=lambda arrival: arrival[0])


@settings(deadline=None, max_examples=60)
@given(streams())
def test_the_time_line_is_unbroken_and_as_long_as_what_it_covers(
    arrivals: list[tuple[float, Packet, int]],
) -> None:
    uplink = Uplink(RATE)
    sounds: list[Sound] = []
    for now, sent, _ in arrivals:
        while uplink.deadline <= now:
            sounds += uplink.timer(uplink.deadline)
        sounds += uplink.receive(sent, now)
    sounds += uplink.timer(math.inf)
    check_unbroken(sounds)
    decoded = [sound for sound in sounds if sound.kind is D]
    assert len(decoded) + uplink.late + uplink.duplicates == len(arrivals)
    if not arrivals:
        return
    start = arrivals[0][1].timestamp
    ends = {(sent.timestamp - start) & 0xFFFFFFFF: size for _, sent, size in arrivals}
    last = max(at for at in ends if at < 1 << 31)
    assert sum(map(ticks, sounds)) == last + ends[last]
    places = {(sound.timestamp - start, ticks(sound)) for sound in decoded}
    assert len(places) == len(decoded)
    assert places <= set(ends.items())


NUMBERS = st.sampled_from((0, 1, 2, 3, 4, 5, 6, 7, 50, 3000, 30_000, 65_533, 65_535))
TIMESTAMPS = st.sampled_from((0, 1, 119, 960, 48_000, 2**31 - 1, 2**31, 2**32 - 1)) | st.integers(
    0, 2**32 - 1
)
PAYLOADS = st.binary(max_size=8) | st.sampled_from(spoken.packets(fec=True)[60:80])
HOSTILE = st.builds(Packet, st.just(111), NUMBERS, TIMESTAMPS, st.integers(1, 3), PAYLOADS)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(HOSTILE, st.sampled_from((0.0, 0.02, 0.5, 30.0))), max_size=60))
def test_whatever_a_client_makes_up_costs_no_more_than_the_time_it_takes(
    made_up: list[tuple[Packet, float]],
) -> None:
    uplink, now, sounds = Uplink(RATE), 0.0, []
    for sent, step in made_up:
        sounds += uplink.receive(sent, now)
        now += step
        if uplink.deadline <= now:
            sounds += uplink.timer(now)
    for before, sound in pairwise(sounds):
        jump = sound.timestamp - before.timestamp - ticks(before)
        assert jump == 0 or jump > MAX_SILENCE
    silent = sum(ticks(sound) for sound in sounds if sound.kind is S)
    assert silent <= now * CLOCK_RATE + 2 * LEAD
    assert sum(sound.kind is D for sound in sounds) + uplink.undecodable <= len(made_up)
