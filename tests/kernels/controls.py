"""Programs whose fate on each kernel is known: they show that a guest is what it says it is.

A matrix that asks nothing, or asks the wrong kernel, would look just as green. Pure: the programs
are few instructions each and need no compiler.
"""

import struct
from collections.abc import Mapping
from dataclasses import dataclass

_EXIT = 0x95, 0, 0, 0, 0
_DATA, _DATA_END = 0, 4  # offsets in struct xdp_md


def _program(*instructions: tuple[int, int, int, int, int]) -> bytes:
    """Each is operation, destination register, source register, offset, number."""
    return b"".join(
        struct.pack("<BBhi", operation, destination | source << 4, offset, number)
        for operation, destination, source, offset, number in instructions
    )


@dataclass(frozen=True, slots=True)
class Control:
    """An XDP program that kernels accept from version `since` on; None = no kernel does."""

    name: str
    since: tuple[int, int] | None
    program: bytes

    def accepted_by(self, version: tuple[int, int]) -> bool:
        return self.since is not None and version >= self.since


CONTROLS = (
    Control(
        "packet byte, bounds checked",
        (4, 8),
        _program(
            (0xB7, 0, 0, 0, 2),  # r0 = XDP_PASS
            (0x61, 2, 1, _DATA, 0),  # r2 = ctx->data
            (0x61, 3, 1, _DATA_END, 0),  # r3 = ctx->data_end
            (0xBF, 4, 2, 0, 0),  # r4 = r2
            (0x07, 4, 0, 0, 1),  # r4 += 1
            (0x2D, 4, 3, 1, 0),  # if r4 > r3: skip one
            (0x71, 0, 2, 0, 0),  # r0 = *(u8 *)r2
            _EXIT,
        ),
    ),
    Control(
        "packet byte, unchecked",
        None,
        _program((0x61, 2, 1, _DATA, 0), (0x71, 0, 2, 0, 0), _EXIT),
    ),
    Control(
        "call of bpf_ktime_get_tai_ns",
        (6, 1),
        _program((0x85, 0, 0, 0, 208), _EXIT),
    ),
    Control(
        "sign-extending move",
        (6, 6),
        _program((0xB7, 2, 0, 0, 5), (0xBF, 0, 2, 8, 0), _EXIT),  # r0 = (s8)r2
    ),
    Control(
        "load-acquire",
        (6, 15),
        _program((0x7A, 10, 0, -8, 0), (0xDB, 0, 10, -8, 0x100), _EXIT),  # r0 = *(r10 - 8)
    ),
)


def surprises(version: tuple[int, int], accepted: Mapping[str, bool]) -> list[str]:
    """What a kernel of that version did otherwise than it should, one sentence each."""
    return [
        f"control {control.name!r} was {_verb(accepted.get(control.name))}"
        for control in CONTROLS
        if accepted.get(control.name) is not control.accepted_by(version)
    ]


def _verb(accepted: bool | None) -> str:
    return {True: "accepted", False: "refused", None: "not tried"}[accepted]
