"""Offers that went wrong: recorded ones with one to three changes, the same for the same seed. Pure
but for the recorded offers, which are read from their files.
"""

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tests.lab.node import REPOSITORY

SEED = 35
COUNT = 2_000
VECTORS = sorted((REPOSITORY / "tests/vectors/sdp").glob("*.sdp"))

Lines = list[str]
Change = Callable[[random.Random, Lines], Lines | bytes]


def _pick(dice: random.Random, lines: Lines, pattern: str = "") -> int:
    """A line that matches, if there is one."""
    return dice.choice([n for n, line in enumerate(lines) if re.match(pattern, line)] or [0])


def _put(lines: Lines, at: int, *new: str) -> Lines:
    """`new` instead of the line at `at`."""
    return [*lines[:at], *new, *lines[at + 1 :]]


def delete(dice: random.Random, lines: Lines) -> Lines:
    return _put(lines, _pick(dice, lines))


def delete_all(dice: random.Random, lines: Lines) -> Lines:
    """Every line of a kind."""
    kind = lines[_pick(dice, lines)].partition(":")[0]
    return [line for line in lines if line.partition(":")[0] != kind]


def double(dice: random.Random, lines: Lines) -> Lines:
    at = _pick(dice, lines)
    return _put(lines, at, lines[at], lines[at])


def swap(dice: random.Random, lines: Lines) -> Lines:
    one, other = _pick(dice, lines), _pick(dice, lines)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def shuffle(dice: random.Random, lines: Lines) -> Lines:
    return dice.sample(lines, len(lines))


def cut(dice: random.Random, lines: Lines) -> Lines:
    return "\r\n".join(lines)[: dice.randrange(2000)].split("\r\n")


def number(dice: random.Random, lines: Lines) -> Lines:
    """Another number than there was."""
    at = _pick(dice, lines, r".*\d")
    odd = dice.choice(
        ["-1", "0", "65536", "99999999999999999999", "9" * 400, "0x10", "1e9", "٣", "½"]
    )
    return _put(lines, at, re.sub(r"\d+", lambda _: odd, lines[at], count=dice.randint(1, 3)))


def port(dice: random.Random, lines: Lines) -> Lines:
    at = _pick(dice, lines, "m=")
    odd = dice.choice(["0", "-9", "65535", "65536", "9/0", "9/99999", "nine", ""])
    return _put(lines, at, re.sub(r" \d+ ", f" {odd} ", lines[at], count=1))


def value(dice: random.Random, lines: Lines) -> Lines:
    """Another value than there was."""
    at = _pick(dice, lines, "a=.*:")
    name = lines[at].partition(":")[0]
    odd = dice.choice(
        ["", " ", ":", "a b", "x" * 300, "\u2028", "ü", "\U0001f4a9", "%s", "0", "a=mid:0"]
    )
    return _put(lines, at, f"{name}:{odd}")


def mid(dice: random.Random, lines: Lines) -> Lines:
    """Two sections of one name, or a name that is none."""
    name = dice.choice(["0", "1", "", "a b", "x" * 65, "ü", "*"])
    return _put(lines, _pick(dice, lines, "a=mid:"), f"a=mid:{name}")


def bundle(dice: random.Random, lines: Lines) -> Lines:
    text = dice.choice(["", "a=group:", "a=group:BUNDLE", "a=group:LS 0 1", "a=group:BUNDLE 9 8"])
    more = dice.choice(["a=group:BUNDLE 1 0", "a=group:BUNDLE 0 0 1 1", "a=group:BUNDLE 1"])
    return _put(lines, _pick(dice, lines, "a=group:"), dice.choice([text, more]))


def setup(dice: random.Random, lines: Lines) -> Lines:
    role = dice.choice(["active", "passive", "holdconn", "both", "", "ACTPASS", "actpass passive"])
    return [f"a=setup:{role}" if line.startswith("a=setup:") else line for line in lines]


def fingerprint(dice: random.Random, lines: Lines) -> Lines:
    whole = ":".join(["AB"] * 32)
    odd = dice.choice(
        [
            *(f"sha-1 {whole[:59]}", f"sha-256 {whole[:-3]}", f"sha-256 {whole}:AB", whole),
            *(f"sha-256  {whole.lower()}", f"md5 {whole}", f"sha-256 {whole.replace(':', '')}"),
            "sha-256",
        ]
    )
    return [f"a=fingerprint:{odd}" if line.startswith("a=fingerprint:") else line for line in lines]


def credentials(dice: random.Random, lines: Lines) -> Lines:
    at = _pick(dice, lines, "a=ice-(ufrag|pwd):")
    name = lines[at].partition(":")[0]
    odd = dice.choice(
        ["abc", "a:b:c:d", "x" * 257, "-_-_-_-_-_-_-_-_-_-_-_-_", "\u00e4" * 24, "other"]
    )
    return _put(lines, at, *dice.choice([[f"{name}:{odd}"], [lines[at], f"{name}:{odd}"]]))


def codec(dice: random.Random, lines: Lines) -> Lines:
    odd = dice.choice(
        ["opus/8000/1", "multiopus/48000/6", "PCMU/8000", "opus", "opus/48000/2/2", "OPUS/48000"]
    )
    return [re.sub(r"opus/48000/2", odd, line, flags=re.IGNORECASE) for line in lines]


def protocol(dice: random.Random, lines: Lines) -> Lines:
    at = _pick(dice, lines, "m=")
    odd = dice.choice(
        ["RTP/AVP", "UDP/TLS/RTP/SAVP", "TCP/DTLS/SCTP", "DTLS/SCTP", "udp", "/" * 40]
    )
    return _put(lines, at, re.sub(r"[A-Z]+/[A-Z/]+", odd, lines[at], count=1))


def foreign(dice: random.Random, lines: Lines) -> Lines:
    """A line of another client."""
    other = dice.choice(VECTORS).read_text().splitlines()
    return [*lines[: (at := _pick(dice, lines))], other[_pick(dice, other)], *lines[at:]]


def twice(dice: random.Random, lines: Lines) -> Lines:
    """Two offers in one."""
    return lines + lines[dice.choice([0, 4]) :]


def long_line(dice: random.Random, lines: Lines) -> Lines:
    at = _pick(dice, lines)
    return _put(lines, at, lines[at] + dice.choice("x 1:/") * dice.choice([900, 4_000, 60_000]))


def many(dice: random.Random, lines: Lines) -> Lines:
    """One line very often."""
    at = _pick(dice, lines)
    odd = dice.choice(
        [
            lines[at],
            *("m=audio 9 UDP/TLS/RTP/SAVPF 111", "m=x 0 y z", "a=group:BUNDLE 0 1"),
            *("a=rtpmap:1 opus/48000/2", "a=mid:x", "a=x", "a=ssrc:1 cname:x", ""),
        ]
    )
    most = 60_000 // (len(odd) + 2)  # that a body holds
    return _put(lines, at, *[odd] * dice.choice([40, most, 10_000]))


def spaces(dice: random.Random, lines: Lines) -> Lines:
    at = _pick(dice, lines)
    return _put(lines, at, lines[at].replace(" ", dice.choice(["  ", "\t", "\u00a0", ""])))


def case(dice: random.Random, lines: Lines) -> Lines:
    at = _pick(dice, lines)
    return _put(lines, at, dice.choice([lines[at].upper(), lines[at].lower(), " " + lines[at]]))


def ends(dice: random.Random, lines: Lines) -> bytes:
    """Other ends of lines."""
    return (
        dice.choice(["\r", "\n\r", "\n\n", "\\r\\n", " ", "\r\r\n", "\u2028"]).join(lines).encode()
    )


def flip(dice: random.Random, lines: Lines) -> bytes:
    data = bytearray("\r\n".join([*lines, ""]).encode())
    for _ in range(dice.randint(1, 8)):
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return bytes(data)


def alien(dice: random.Random, lines: Lines) -> bytes:
    """Bytes that no text has."""
    data = "\r\n".join([*lines, ""]).encode()
    at = dice.randrange(len(data))
    return data[:at] + dice.choice([b"\0", b"\x1b", b"\xff", b"\xed\xa0\x80", b"\x7f"]) + data[at:]


def other_format(dice: random.Random, lines: Lines) -> bytes:
    text = "\r\n".join([*lines, ""])
    return dice.choice(
        [
            *(text.encode("utf-16"), b"\xef\xbb\xbf" + text.encode(), json.dumps(text).encode()),
            *(json.dumps({"type": "offer", "sdp": text}).encode(), b"", b"v=0", b" \r\n"),
            *(dice.randbytes(400), text.encode("utf-7")),
        ]
    )


CHANGES: tuple[Change, ...] = (
    *(delete, delete_all, double, swap, shuffle, cut, number, port, value, mid, bundle, setup),
    *(fingerprint, credentials, codec, protocol, foreign, twice, long_line, many, spaces, case),
    *(ends, flip, alien, other_format),
)


@dataclass(frozen=True)
class Mutant:
    name: str  # which offer, and what was done to it
    offer: bytes


def mutants(count: int = COUNT, seed: int = SEED) -> Iterator[Mutant]:
    """`count` offers: each change comes as often as any other, and each recorded offer."""
    dice = random.Random(seed)
    for nth in range(count):
        base = VECTORS[nth % len(VECTORS)]
        lines = base.read_text().splitlines()
        body = b""
        names = []
        for change in (CHANGES[nth % len(CHANGES)], *dice.choices(CHANGES, k=dice.randint(0, 2))):
            names.append(change.__name__)
            changed = change(dice, lines) if lines else b""
            if isinstance(changed, bytes):
                body = changed
                break
            lines = changed
            body = "\r\n".join([*lines, ""]).encode()
        yield Mutant(" ".join([base.stem, *names]), body)
