"""Make a scene that shows a disagreement as small as it gets while it still shows the same one.

Pure, but for what the judge does that is handed in.
"""

import dataclasses
from collections.abc import Callable, Iterator

from tests.oracle.damage import ETHERNET
from tests.oracle.scene import Scene, Sent

Judge = Callable[[Scene], bool]
"""Whether a scene still shows it."""

PATIENCE = 600  # scenes judged; what is smallest by then has to do


def shrunk(scene: Scene, shows: Judge) -> Scene:
    """Smaller in frames, flows, state and bytes. `scene` itself shows it."""
    left = PATIENCE
    progress = True
    while progress:
        progress = False
        for step in (_fewer_frames, _less_state, _plainer_frames):
            candidates = step(scene)
            while left and (smaller := next(candidates, None)):
                left -= 1
                if shows(smaller):
                    scene, progress = smaller, True
                    candidates = step(scene)
    return scene


def _fewer_frames(scene: Scene) -> Iterator[Scene]:
    """The boldest first: half of them, then quarters."""
    size = len(scene.frames) // 2
    while size:
        for at in range(0, len(scene.frames), size):
            frames = scene.frames[:at] + scene.frames[at + size :]
            if frames:
                yield dataclasses.replace(scene, frames=frames)
        size //= 2


def _less_state(scene: Scene) -> Iterator[Scene]:
    for at in range(len(scene.flows)):
        yield dataclasses.replace(scene, flows=scene.flows[:at] + scene.flows[at + 1 :])
    for counter in scene.spent:
        rest = {each: used for each, used in scene.spent.items() if each != counter}
        yield dataclasses.replace(scene, spent=rest)
    if scene.heartbeat:
        yield dataclasses.replace(scene, heartbeat=0)


def _plainer_frames(scene: Scene) -> Iterator[Scene]:
    """Bytes cut off at the end, or zeroed. Equal frames stay equal."""
    for sent in dict.fromkeys(scene.frames):
        for plainer in _plainer(sent):
            frames = tuple(plainer if each == sent else each for each in scene.frames)
            yield dataclasses.replace(scene, frames=frames)


def _plainer(sent: Sent) -> Iterator[Sent]:
    if sent.metadata:
        yield sent._replace(metadata=0)
    frame = sent.frame
    size = len(frame) - ETHERNET
    while size > 0:
        yield sent._replace(frame=frame[:-size])
        size //= 2
    width = len(frame) // 2
    while width:
        for at in range(0, len(frame), width):
            zeroed = frame[:at] + bytes(len(frame[at : at + width])) + frame[at + width :]
            if zeroed != frame:
                yield sent._replace(frame=zeroed)
        width //= 2
