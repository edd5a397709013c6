"""Only Binding requests with an authentic route token reach user space; on a miss, here."""

import base64
import json
import random
import string
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from relayctl.datapath.libbpf import XDP_DROP, XDP_PASS
from relayctl.reason import Reason
from relayctl.wire import route_token
from relayctl.wire import stun as wire_stun
from relayctl.wire.route_token import Key
from tests.kernel.packets import (
    FINGERPRINT,
    MESSAGE_INTEGRITY,
    MESSAGE_INTEGRITY_SHA256,
    USERNAME,
    attribute,
    frame,
    request,
    stun,
)
from tests.kernel.rig import (
    CLIENT,
    CLIENT_V6,
    ENDPOINT_V6,
    KEY,
    NATTED_LOCAL,
    NATTED_LOCAL_V6,
    VIP,
    VIP_V6,
    Outcome,
    Rig,
    now,
    token,
)

VECTORS = json.loads(Path("tests/vectors/route_token.json").read_text())
OTHER_KEY = Key(30, bytes(range(100, 132)))
BASE64 = frozenset((string.ascii_letters + string.digits + "+/").encode())


def miss(relay: Rig, payload: bytes) -> Outcome:
    """What becomes of a client's first packet; it is never changed."""
    sent = frame(CLIENT, VIP, payload)
    outcome = relay.send(sent)
    assert outcome.data == sent
    assert outcome.verdict == (XDP_PASS if outcome.reason is Reason.PUNT_FIRST else XDP_DROP)
    return outcome


def with_username(value: bytes, *, before: bytes = b"") -> bytes:
    return stun(attributes=before + attribute(USERNAME, value))


@pytest.mark.parametrize(
    ("client", "vip"),
    [(CLIENT, VIP), (CLIENT, NATTED_LOCAL), (CLIENT_V6, VIP_V6), (CLIENT_V6, NATTED_LOCAL_V6)],
)
def test_authentic_token_is_let_through(
    relay: Rig, client: tuple[str, int], vip: tuple[str, int]
) -> None:
    for made in (token(), token(ENDPOINT_V6), token(("255.255.255.255", 65535), cluster=65535)):
        assert relay.send(frame(client, vip, request(made))).reason is Reason.PUNT_FIRST


@pytest.mark.parametrize("vector", VECTORS["tokens"], ids=lambda v: v["token"])
def test_vector(relay: Rig, vector: dict[str, str]) -> None:
    key = VECTORS["key"]
    relay.datapath.write_keys({key["id"]: Key(key["id"], bytes.fromhex(key["secret"]))})
    assert miss(relay, request(vector["token"])).reason is Reason.PUNT_FIRST


@pytest.mark.parametrize("bit", range(144))
def test_every_bit_of_a_token_matters(relay: Rig, bit: int) -> None:
    raw = bytearray(base64.b64decode(token()))
    raw[bit // 8] ^= 0x80 >> bit % 8
    version, key_id = range(3), range(3, 8)
    wanted = Reason.DROP_FORGED
    if bit in version:
        wanted = Reason.DROP_STUN_SHAPE
    if bit in key_id:
        wanted = Reason.DROP_UNKNOWN_KEY
    assert miss(relay, request(base64.b64encode(raw).decode())).reason is wanted


@pytest.mark.parametrize("version", [0, *range(2, 8)])
def test_other_version_is_no_token(relay: Rig, version: int) -> None:
    raw = base64.b64decode(token())
    made = base64.b64encode(bytes([version << 5 | KEY.id]) + raw[1:])
    assert miss(relay, request(made.decode())).reason is Reason.DROP_STUN_SHAPE


@pytest.mark.parametrize("id", range(32))
def test_every_key_id_has_its_slot(relay: Rig, id: int) -> None:
    keys = {n: Key(n, bytes([n]) * 32) for n in range(32)}
    relay.datapath.write_keys(keys)
    assert miss(relay, request(token(key=keys[id]))).reason is Reason.PUNT_FIRST
    stolen = Key(id, keys[(id + 1) % 32].secret)
    assert miss(relay, request(token(key=stolen))).reason is Reason.DROP_FORGED
    del keys[id]
    relay.datapath.write_keys(keys)
    assert miss(relay, request(token(key=stolen))).reason is Reason.DROP_UNKNOWN_KEY


@pytest.mark.parametrize("half", [0, 16])
def test_both_halves_of_a_secret_matter(relay: Rig, half: int) -> None:
    secret = bytearray(KEY.secret)
    secret[half] ^= 1
    made = token(key=Key(KEY.id, bytes(secret)))
    assert miss(relay, request(made)).reason is Reason.DROP_FORGED


def test_keys_come_and_go_without_loss_for_the_others(relay: Rig) -> None:
    """A key that stays is never missing, not even for the moment of the change."""
    is_over = threading.Event()
    changes = 0

    def rotating() -> None:
        nonlocal changes
        while not is_over.is_set():
            others = {OTHER_KEY.id: OTHER_KEY} if changes % 2 else {}
            relay.datapath.write_keys({KEY.id: KEY} | others)
            changes += 1

    thread = threading.Thread(target=rotating)
    thread.start()
    counts: Counter[Reason] = Counter()
    before = changes
    while changes < before + 3:
        relay.datapath.beat(now())
        counts.update(relay.run(frame(CLIENT, VIP, request(token())) for _ in range(400)))
    is_over.set()
    thread.join()
    assert counts[Reason.PUNT_FIRST] >= 400
    assert counts.keys() <= {Reason.PUNT_FIRST, Reason.DROP_FIRST_BUDGET}  # authentic, all of them


@pytest.mark.parametrize(
    ("payload", "reason"),
    [
        pytest.param(lambda t: with_username(t + b":x"), Reason.PUNT_FIRST, id="short_remote"),
        pytest.param(lambda t: with_username(t + b":"), Reason.PUNT_FIRST, id="no_remote"),
        pytest.param(
            lambda t: with_username(t + b":" + b"r" * 256), Reason.PUNT_FIRST, id="long_remote"
        ),
        pytest.param(lambda t: with_username(t), Reason.DROP_STUN_SHAPE, id="no_colon"),
        pytest.param(lambda t: with_username(t + b";x"), Reason.DROP_STUN_SHAPE, id="semicolon"),
        pytest.param(
            lambda t: with_username(t[:23] + b":x"), Reason.DROP_STUN_SHAPE, id="23_characters"
        ),
        pytest.param(
            lambda t: with_username(t + b"A:x"), Reason.DROP_STUN_SHAPE, id="25_characters"
        ),
        pytest.param(lambda t: with_username(b""), Reason.DROP_STUN_SHAPE, id="empty"),
        pytest.param(lambda t: with_username(b":x"), Reason.DROP_STUN_SHAPE, id="colon_first"),
        pytest.param(lambda t: with_username(b"x:" + t), Reason.DROP_STUN_SHAPE, id="reversed"),
        pytest.param(lambda t: with_username(b"x:y"), Reason.DROP_STUN_SHAPE, id="foreign_ufrag"),
        pytest.param(
            lambda t: stun(attributes=attribute(USERNAME, b"x:y") + attribute(USERNAME, t + b":x")),
            Reason.DROP_STUN_SHAPE,
            id="second_username",
        ),
        pytest.param(
            lambda t: stun(attributes=attribute(0x0007, t + b":x")),
            Reason.DROP_STUN_SHAPE,
            id="other_attribute",
        ),
    ],
)
def test_shape_of_the_username(
    relay: Rig, payload: Callable[[bytes], bytes], reason: Reason
) -> None:
    assert miss(relay, payload(token().encode())).reason is reason


def test_every_other_character_at_every_place_is_no_token(relay: Rig) -> None:
    made = token().encode()
    others = [byte for byte in range(256) if byte not in BASE64]
    frames = [
        frame(CLIENT, VIP, with_username(made[:at] + bytes([byte]) + made[at + 1 :] + b":WvQ1"))
        for at in range(24)
        for byte in others
    ]
    assert relay.run(frames) == {Reason.DROP_STUN_SHAPE: 24 * 192}


def test_every_character_is_a_sextet(relay: Rig) -> None:
    """Behind version and key id, which are the same here."""
    tokens = [token() for _ in range(1000)]
    assert {(at, made[at]) for made in tokens for at in range(2, 24)} == {
        (at, chr(byte)) for at in range(2, 24) for byte in BASE64
    }
    counts: Counter[Reason] = Counter()
    for at in range(0, len(tokens), 50):
        relay.datapath.beat(now())  # where the program is emulated all of them outlast a beat
        counts.update(relay.run(frame(CLIENT, VIP, request(made)) for made in tokens[at : at + 50]))
    assert counts == {Reason.PUNT_FIRST: 1000}


UNKNOWN = attribute(0xC057, b"abc")  # padded to 8 bytes


@pytest.mark.parametrize(
    ("before", "reason"),
    [
        pytest.param(UNKNOWN, Reason.PUNT_FIRST, id="one_attribute"),
        pytest.param(UNKNOWN * 8, Reason.PUNT_FIRST, id="8_attributes"),
        pytest.param(UNKNOWN * 9, Reason.DROP_STUN_SHAPE, id="9_attributes"),
        pytest.param(attribute(0x8022, bytes(600)), Reason.PUNT_FIRST, id="600_bytes"),
        pytest.param(attribute(0x8022, bytes(996)), Reason.PUNT_FIRST, id="username_at_1020"),
        pytest.param(attribute(0x8022, bytes(1000)), Reason.DROP_STUN_SHAPE, id="username_at_1024"),
        pytest.param(attribute(0x8022, b""), Reason.PUNT_FIRST, id="empty_attribute"),
        pytest.param(attribute(0x8022, b"1"), Reason.PUNT_FIRST, id="3_bytes_of_padding"),
        pytest.param(attribute(0x8022, b"12"), Reason.PUNT_FIRST, id="2_bytes_of_padding"),
        pytest.param(
            attribute(MESSAGE_INTEGRITY, bytes(20)), Reason.DROP_STUN_SHAPE, id="behind_integrity"
        ),
        pytest.param(
            attribute(MESSAGE_INTEGRITY_SHA256, bytes(32)),
            Reason.DROP_STUN_SHAPE,
            id="behind_integrity_sha256",
        ),
        pytest.param(
            attribute(FINGERPRINT, bytes(4)), Reason.DROP_STUN_SHAPE, id="behind_fingerprint"
        ),
        pytest.param(
            b"\x80\x22\xff\xff" + bytes(8), Reason.DROP_STUN_SHAPE, id="attribute_beyond_the_end"
        ),
        pytest.param(
            b"\x80\x22\xff\xfd" + bytes(8), Reason.DROP_STUN_SHAPE, id="length_that_wraps_to_0"
        ),
    ],
)
def test_attributes_in_front_of_the_username(relay: Rig, before: bytes, reason: Reason) -> None:
    assert miss(relay, request(token(), before=before)).reason is reason


@pytest.mark.parametrize("cut", range(4, 36, 4))
def test_username_beyond_the_end_is_none(relay: Rig, cut: int) -> None:
    whole = with_username(token().encode() + b":WvQ1")  # 29 bytes, and 3 of padding
    short = whole[:-cut]
    short = short[:2] + (len(short) - 20).to_bytes(2, "big") + short[4:]
    assert miss(relay, short).reason is Reason.DROP_STUN_SHAPE


@pytest.mark.parametrize("length", [24, 25, 26, 28, 29])
def test_username_length_decides_not_what_follows(relay: Rig, length: int) -> None:
    whole = bytearray(request(token()))
    whole[22:24] = length.to_bytes(2, "big")
    wanted = Reason.DROP_STUN_SHAPE if length == 24 else Reason.PUNT_FIRST
    assert miss(relay, bytes(whole)).reason is wanted


def random_request(source: random.Random, key: Key) -> bytes:
    """More or less a Binding request, more or less with a token."""
    made = bytearray(token(key=key).encode())
    for _ in range(source.choice([0, 0, 0, 1, 2])):
        made[source.randrange(len(made))] = source.choice([source.randrange(256), *b"Az0+/IJ"])
    tail = source.choice([b":WvQ1", b":WvQ1", b":WvQ1", b":", b"", b"a:b", b":" + b"x" * 300])
    count = source.choice([0, 0, 1, 2, 7, 8, 9])
    kinds = [0xC057] * 20 + [0x0024, 0x8022, 0x0008, 0x001C, 0x8028, 0x0006]
    sizes = [0, 1, 2, 3, 4, 8, 100, 700]
    before = b"".join(
        attribute(source.choice(kinds), bytes(source.choice(sizes))) for _ in range(count)
    )
    message = bytearray(stun(attributes=before + attribute(USERNAME, bytes(made) + tail)))
    if source.random() < 0.2:
        message[source.randrange(len(message))] ^= 1 << source.randrange(8)
    if source.random() < 0.1:
        del message[source.randrange(20, len(message)) :]
    if source.random() < 0.5:  # mend the length, so that the attributes decide
        del message[20 + (len(message) - 20) // 4 * 4 :]
        message[2:4] = (len(message) - 20).to_bytes(2, "big")
    return bytes(message)


def judged(payload: bytes) -> Reason:
    """What the product's Python reads in a request."""
    if not wire_stun.is_whole(payload, 0x0001):
        return Reason.DROP_NO_FLOW
    text = wire_stun.token_of(payload)
    if text is None:
        return Reason.DROP_STUN_SHAPE
    try:
        route_token.open_token({KEY.id: KEY}, text)
    except route_token.TokenError as error:
        return {
            route_token.Reject.MALFORMED: Reason.DROP_STUN_SHAPE,
            route_token.Reject.UNKNOWN_KEY: Reason.DROP_UNKNOWN_KEY,
            route_token.Reject.FORGED: Reason.DROP_FORGED,
        }[error.reason]
    return Reason.PUNT_FIRST


def test_agrees_with_python_on_random_requests(relay: Rig) -> None:
    source = random.Random(12)
    keys = [KEY] * 8 + [OTHER_KEY, Key(KEY.id, OTHER_KEY.secret)]
    by_reason: dict[Reason, list[bytes]] = {}
    for _ in range(2000):
        payload = random_request(source, source.choice(keys))
        if payload[0] < 20:  # what is no STUN at all has cases elsewhere
            by_reason.setdefault(judged(payload), []).append(payload)
    assert min(len(found) for found in by_reason.values()) > 30
    assert len(by_reason) == 5
    for reason, payloads in by_reason.items():
        counts = relay.run(frame(CLIENT, VIP, each) for each in payloads)
        if counts != {reason: len(payloads)}:
            odd = [p.hex() for p in payloads if relay.send(frame(CLIENT, VIP, p)).reason != reason]
            pytest.fail(f"{reason.name}: {counts}; {odd[:3]}")
