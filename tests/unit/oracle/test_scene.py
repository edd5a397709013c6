import random

from relayctl.datapath.budgets import Region
from relayctl.flow import Flow, FlowKey
from tests.oracle.generator import Generator
from tests.oracle.node import NODES
from tests.oracle.scene import NOW, Scene, Sent, from_line, moved, read, to_line


def test_a_line_says_everything() -> None:
    for name, relay in NODES.items():
        generator = Generator(relay, random.Random(name))
        for _ in range(5):
            scene = generator.scene()
            assert from_line(to_line(scene)) == scene


def test_a_file_is_a_scene_a_line() -> None:
    scene = Scene("spp", (Sent("outer", b"\1\2"), Sent("lo", b"\3", 4)), note="what it shows")
    spent = Scene("lab", (), spent={(Region.TOKEN, 7): 15})
    text = f"# comment\n\n{to_line(scene)}\n{to_line(spent)}\n"
    assert read(text) == [scene, spent]


def test_stamps_move_and_never_stays() -> None:
    flow = Flow(("10.2.0.2", 5000), 7, 5100, contended=NOW, answers=(NOW & 0xFFFFFF) << 8 | 3)
    found = moved(flow, 10)
    assert (found.contended, found.seen_up) == (NOW + 10, 0)
    assert found.answers == (NOW + 10) << 8 | 3
    assert moved(found, -10) == flow


def test_key_of_a_flow_is_on_the_line() -> None:
    key = FlowKey(("2001:db8::1", 40000), 3)
    scene = Scene("spp", (), ((key, Flow(("fd00:2::2", 5000), 8, 5100, token=b"12345678")),))
    assert from_line(to_line(scene)) == scene
