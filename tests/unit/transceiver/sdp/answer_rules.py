"""What an answer of ours has to be, by the words of the RFCs: a reader of its own.

It shares nothing with the parser and the writer that it judges.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from relayctl.wire.address import Address

MAX_LINE = 1000  # characters, so that no reader's buffer is too small
MAX_ANSWER = 2048  # characters, to an offer with few sections
FEW = 4
MID = "urn:ietf:params:rtp-hdrext:sdes:mid"
MIRROR = {"sendrecv": "sendrecv", "sendonly": "recvonly", "recvonly": "sendonly"}
DIRECTIONS = ("sendrecv", "sendonly", "recvonly", "inactive")
FORBIDDEN = re.compile(r"a=(rtcp-fb|ptime|maxptime|ice-lite|crypto|rtcp:|bundle-only)|b=|k=|i=")
LINE = re.compile(r"[a-z]=[!-~][ -~]*")
TRANSPORT = ("ice-ufrag", "ice-pwd", "fingerprint", "setup")
ATTRIBUTES = re.compile(
    r"(mid|sendrecv|sendonly|recvonly|inactive|extmap|rtcp-mux|rtpmap|fmtp|msid|ssrc|ice-ufrag"
    r"|ice-pwd|fingerprint|setup|candidate|end-of-candidates|sctp-port|sctpmap|max-message-size)(:|$)"
)


@dataclass
class Part:
    """The session (no `m`), or a section."""

    m: list[str]
    lines: list[str]

    def all(self, name: str) -> list[str]:
        """Values of `a=<name>:<value>`, or an empty text for the flag."""
        found = (line[2:].partition(":") for line in self.lines if line.startswith("a="))
        return [value for found_name, _, value in found if found_name.lower() == name]

    def one(self, name: str) -> str | None:
        return next(iter(self.all(name)), None)

    @property
    def direction(self) -> str | None:
        return next((name for name in DIRECTIONS if self.all(name)), None)


def read(text: str) -> list[Part]:
    parts = [Part([], [])]
    for line in text.replace("\r\n", "\n").strip().split("\n"):
        if line.startswith("m="):
            parts.append(Part(line[2:].split(), []))
        else:
            parts[-1].lines.append(line.rstrip())
    return parts


def breaches(offer: str, answer: str, candidates: tuple[Address, ...]) -> list[str]:
    """Every rule that `answer` breaks as the answer to `offer` with these candidates."""
    asked, asked_parts = (lambda parts: (parts[0], parts[1:]))(read(offer))
    said, said_parts = (lambda parts: (parts[0], parts[1:]))(read(answer))
    if len(asked_parts) != len(said_parts):
        return [f"{len(said_parts)} m-lines answer {len(asked_parts)}"]
    pairs = list(zip(asked_parts, said_parts, strict=True))
    return [
        *_text(answer, len(pairs)),
        *_session(said),
        *_bundle(asked, said, pairs),
        *_candidates(said, said_parts, candidates),
        *(found for theirs, ours in pairs for found in _section(asked, theirs, ours)),
        *_accepted(pairs),
    ]


def _text(answer: str, sections: int) -> Iterator[str]:
    """RFC 8866 section 5."""
    if answer.replace("\r\n", "").count("\n") or "\r" in answer.replace("\r\n", ""):
        yield "a line does not end with CRLF"
    if not answer.endswith("\r\n"):
        yield "the last line has no end"
    if sections <= FEW and len(answer) > MAX_ANSWER:
        yield f"{len(answer)} characters"
    for line in answer.split("\r\n")[:-1]:
        if not LINE.fullmatch(line) or len(line) > MAX_LINE:
            yield f"{line[:60]!r} is no line"
        if FORBIDDEN.match(line):
            yield f"{line!r} is not ours to say"


def _session(said: Part) -> Iterator[str]:
    if [line[0] for line in said.lines[:4]] != ["v", "o", "s", "t"]:
        yield "v=, o=, s= and t= do not begin it"
    if not re.fullmatch(r"o=- \d{1,19} \d+ IN IP4 \S+", said.lines[1]):
        yield f"{said.lines[1]!r} is no origin"
    if said.all("ice-options") != ["ice2"]:
        yield "no a=ice-options:ice2"


def _bundle(asked: Part, said: Part, pairs: list[tuple[Part, Part]]) -> Iterator[str]:
    """RFC 8843 section 7.3: what we accept, in the order of the offer's group."""
    words = [group.split() for group in asked.all("group")]
    groups = [group[1:] for group in words if group and group[0].upper() == "BUNDLE"]
    accepted = {ours.one("mid") for _, ours in pairs if ours.m[1] != "0"}
    audio = next((p.one("mid") for _, p in pairs if p.m[0] == "audio" and p.m[1] != "0"), None)
    offered = next((group for group in groups if audio in group), None)
    ours = [group.split()[1:] for group in said.all("group")]
    wanted = [] if offered is None else [[mid for mid in dict.fromkeys(offered) if mid in accepted]]
    if ours != wanted:
        yield f"BUNDLE {ours} to {groups} with {accepted} accepted"


def _candidates(said: Part, sections: list[Part], candidates: tuple[Address, ...]) -> Iterator[str]:
    """One for each family, IPv6 first (RFC 8421), where the transport of the bundle is told."""
    group = said.one("group")
    first = group.split()[1] if group else None
    for section in sections:
        lines = [line.split() for line in section.all("candidate")]
        is_first = section.m[1] != "0" and (first is None or section.one("mid") == first)
        if bool(lines) != is_first or (len(section.all("end-of-candidates")) == 1) != is_first:
            yield f"candidates in section {section.one('mid')}"
        if not is_first:
            continue
        hosts = [(words[4], int(words[5])) for words in lines]
        if hosts != sorted(candidates, key=lambda address: ":" not in address[0]):
            yield f"candidates {hosts}"
        if any(words[1:3] != ["1", "udp"] or words[6:] != ["typ", "host"] for words in lines):
            yield "a candidate is none of a host"
        ranks = [int(words[3]) for words in lines]
        if len(set(ranks)) < len(ranks) or ranks != sorted(ranks, reverse=True):
            yield f"priorities {ranks}"
        shown = section.lines[0].split()[-1], int(section.m[1])
        if shown != next((c for c in hosts if ":" not in c[0]), hosts[0]):
            yield f"m= and c= show {shown}"


def _section(asked: Part, theirs: Part, ours: Part) -> Iterator[str]:
    name = f"section {ours.one('mid')}:"
    if (ours.m[0], ours.m[2]) != (theirs.m[0].lower(), theirs.m[2]):
        yield f"{name} {ours.m} answers {theirs.m}"
    if ours.all("mid") != theirs.all("mid")[:1]:
        yield f"{name} answers mid {theirs.all('mid')}"
    if not ours.lines or not ours.lines[0].startswith("c=IN IP"):
        yield f"{name} no c= of its own"
    for attribute in TRANSPORT:  # rejected or not: there are readers that want them everywhere
        if len(ours.all(attribute)) != 1:
            yield f"{name} {len(ours.all(attribute))} of a={attribute}"
    strange = [line for line in ours.lines[1:] if not ATTRIBUTES.match(line[2:])]
    if strange:
        yield f"{name} {strange}"
    if ours.m[1] == "0":
        if {line[2:].partition(":")[0] for line in ours.lines[1:]} - {
            "inactive",
            "mid",
            *TRANSPORT,
        }:
            yield f"{name} rejected, with words"
        return
    offered = theirs.one("setup") or asked.one("setup")
    if ours.one("setup") != ("active" if offered == "passive" else "passive"):
        yield f"{name} a=setup:{ours.one('setup')} to {offered}"
    yield from _audio(name, asked, theirs, ours) if ours.m[0] == "audio" else ()


def _audio(name: str, asked: Part, theirs: Part, ours: Part) -> Iterator[str]:
    direction = theirs.direction or asked.direction or "sendrecv"
    if ours.direction != MIRROR.get(direction, "inactive"):
        yield f"{name} {ours.direction} to {direction}"
    sends = ours.direction in ("sendrecv", "sendonly")
    if {len(ours.all("msid")), len(ours.all("ssrc"))} != {int(sends)}:
        yield f"{name} a=msid and a=ssrc of who is {ours.direction}"
    if len(ours.m) != 4 or ours.m[3] not in theirs.m[3:]:
        yield f"{name} formats {ours.m[3:]}"
    if ours.all("rtpmap") != [f"{ours.m[3]} opus/48000/2"]:
        yield f"{name} a=rtpmap:{ours.all('rtpmap')}"
    if ours.all("fmtp") != [f"{ours.m[3]} minptime=10;useinbandfec=1"]:
        yield f"{name} a=fmtp:{ours.all('fmtp')}"
    if bool(ours.all("rtcp-mux")) != bool(theirs.all("rtcp-mux")):
        yield f"{name} a=rtcp-mux"
    if any(line.split()[1:] != [MID] for line in ours.all("extmap")):
        yield f"{name} a=extmap:{ours.all('extmap')}"
    offered = [line.replace("/sendrecv", "") for line in theirs.all("extmap")]
    if any(line not in offered for line in ours.all("extmap")):
        yield f"{name} a=extmap that was not offered so"


def _accepted(pairs: list[tuple[Part, Part]]) -> Iterator[str]:
    accepted = [ours for _, ours in pairs if ours.m[1] != "0"]
    kinds = sorted(ours.m[0] for ours in accepted)
    if kinds not in (["audio"], ["application", "audio"]):
        yield f"accepted {kinds}"
    if len({tuple(ours.one(name) for name in TRANSPORT) for ours in accepted}) != 1:
        yield "more than one transport"
