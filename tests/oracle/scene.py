"""A scene: a relay's state, and the frames that it meets one after the other.

Pure. Scenes are written at stamp `NOW`; whoever plays one later moves all its stamps. As a line of
JSON a scene is a test vector (`tests/vectors/oracle_regressions.txt`).
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from relayctl.datapath.budgets import Region
from relayctl.flow import Flow, FlowKey

Counter = tuple[Region, int]
"""A counter of the budgets: its kind, and the index of its bucket."""

NOW = 1_000_000  # units
_STAMPS = ("seen_up", "seen_down", "contended", "born")
_COUNT_BITS = 8  # of `answers`: the unit stands above them


class Sent(NamedTuple):
    """One frame on the wire of a device."""

    carrier: str
    frame: bytes
    metadata: int = 0  # bytes in front of the frame that take head room away


@dataclass(frozen=True, slots=True)
class Scene:
    node: str
    frames: tuple[Sent, ...]
    flows: tuple[tuple[FlowKey, Flow], ...] = ()
    heartbeat: int = 0  # age of the last one, in units
    spent: Mapping[Counter, int] = field(default_factory=dict)
    """What budgets have let through already in this unit."""
    note: str = ""


def moved(flow: Flow, by: int) -> Flow:
    """The flow as if it all had happened `by` units later."""
    changes = {name: getattr(flow, name) + by for name in _STAMPS if getattr(flow, name)}
    if flow.answers:
        unit = (flow.answers >> _COUNT_BITS) + by & 0xFFFFFF
        changes["answers"] = unit << _COUNT_BITS | flow.answers & 0xFF
    return flow._replace(**changes)


def to_line(scene: Scene) -> str:
    """One line of JSON; fields that have their default value are left out."""
    flows = [[*key.client, key.vip, _differences(flow)] for key, flow in scene.flows]
    content: dict[str, Any] = {
        "note": scene.note,
        "node": scene.node,
        "heartbeat": scene.heartbeat,
        "spent": [[region.value, bucket, used] for (region, bucket), used in scene.spent.items()],
        "flows": flows,
        "frames": [
            [s.carrier, s.frame.hex(), *([s.metadata] * bool(s.metadata))] for s in scene.frames
        ],
    }
    return json.dumps({name: value for name, value in content.items() if value or name == "frames"})


def from_line(line: str) -> Scene:
    """The inverse of `to_line`. Raises `ValueError`, `KeyError` or `TypeError` for other text."""
    content = json.loads(line)
    return Scene(
        node=content["node"],
        frames=tuple(Sent(c, bytes.fromhex(text), *more) for c, text, *more in content["frames"]),
        flows=tuple(
            (FlowKey((host, port), vip), _flow(fields))
            for host, port, vip, fields in content.get("flows", [])
        ),
        heartbeat=content.get("heartbeat", 0),
        spent={(Region(name), bucket): used for name, bucket, used in content.get("spent", [])},
        note=content.get("note", ""),
    )


def read(text: str) -> list[Scene]:
    """Every scene of a file: one a line, `#` begins a comment line."""
    lines: Iterable[str] = (line.strip() for line in text.splitlines())
    return [from_line(line) for line in lines if line and not line.startswith("#")]


def _differences(flow: Flow) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for name, value in flow._asdict().items():
        if value != Flow._field_defaults.get(name):
            fields[name] = value.hex() if isinstance(value, bytes) else value
    return fields


def _flow(fields: Mapping[str, Any]) -> Flow:
    changes: dict[str, Any] = {**fields, "endpoint": tuple(fields["endpoint"])}
    if "token" in fields:
        changes["token"] = bytes.fromhex(fields["token"])
    return Flow(**changes)
