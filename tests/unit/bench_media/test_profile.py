from pathlib import Path

from tests.bench_media.profile import Profile, stage_of, stages
from tests.lab.node import REPOSITORY


def line_of(file: str, text: str) -> str:
    path = REPOSITORY / file
    numbers = [n for n, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return f"{path}:function:{numbers[-1]}"


def test_a_line_belongs_to_the_stage_of_what_it_says() -> None:
    assert stage_of(line_of("transceiver/audio/opus.py", "= _decode(")) == "Opus decode"
    assert stage_of(line_of("transceiver/audio/opus.py", "= _encode(")) == "Opus encode"


def test_else_to_the_stage_of_its_place() -> None:
    assert stage_of(line_of("transceiver/rtp.py", "def parse")) == "RTP parse, build, statistics"
    assert stage_of("/x/site-packages/pylibsrtp/__init__.py:__process:274") == "SRTP and DTLS"
    assert stage_of(f"{Path('/usr/lib/python3.11/random.py')}:decode:1") == "other"


def test_shares_are_of_the_time_of_a_packet() -> None:
    lines = {"/x/pylibsrtp/a.py:f:1": 3, "/x/nothing.py:f:1": 1}
    assert stages(Profile("a packet", 200.0, lines)) == [
        ("SRTP and DTLS", 0.75, 150.0),
        ("other", 0.25, 50.0),
    ]
