from relayctl.datapath.budgets import Region
from relayctl.flow import Flow, FlowKey
from tests.oracle.scene import Scene, Sent
from tests.oracle.shrink import PATIENCE, shrunk

FLOW = Flow(("10.2.0.2", 5000), 7, 5100)
FLOWS = tuple((FlowKey(("192.0.2.1", port), 1), FLOW) for port in range(1, 9))
FRAMES = tuple(Sent("outer", bytes([number]) * 100, 4) for number in range(1, 65))
SCENE = Scene("spp", FRAMES, FLOWS, heartbeat=2, spent={(Region.ODD, 0): 199})


def test_what_does_not_matter_goes() -> None:
    def shows(scene: Scene) -> bool:
        return any(len(sent.frame) > 40 and sent.frame[20] == 17 for sent in scene.frames)

    (sent,) = shrunk(SCENE, shows).frames
    assert sent == Sent("outer", bytes(20) + b"\x11" + bytes(20))


def test_what_matters_stays() -> None:
    def shows(scene: Scene) -> bool:
        return FLOWS[5] in scene.flows and bool(scene.spent) and len(scene.frames) > 1

    found = shrunk(SCENE, shows)
    assert (found.flows, found.spent, len(found.frames)) == (FLOWS[5:6], SCENE.spent, 2)
    assert found.heartbeat == 0


def test_a_frame_that_comes_often_stays_one() -> None:
    """A budget is overrun by equal frames: they get plainer together."""
    scene = Scene("spp", FRAMES[:1] * 8)
    found = shrunk(scene, lambda s: len(s.frames) == 8 and len(set(s.frames)) == 1)
    assert found.frames == (Sent("outer", bytes(14)),) * 8


def test_it_comes_to_an_end() -> None:
    judged: list[Scene] = []

    def shows(scene: Scene) -> bool:
        judged.append(scene)
        return False

    assert shrunk(SCENE, shows) is SCENE
    assert len(judged) <= PATIENCE
