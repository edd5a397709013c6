"""What one preflight check found, and the command that mends it."""

import enum
from dataclasses import dataclass


class Status(enum.StrEnum):
    OK = "ok"
    WARN = "warn"  # works, but not as well or not as safely as it could
    FAIL = "fail"  # `serve` would refuse, or packets would be lost
    SKIP = "skip"  # does not apply to this configuration, or cannot be seen from here


@dataclass(frozen=True, slots=True)
class Result:
    """`mend` is a shell command wherever one exists; empty when nothing is to be mended."""

    name: str
    status: Status
    detail: str
    mend: str = ""


def ok(name: str, detail: str) -> Result:
    return Result(name, Status.OK, detail)


def skip(name: str, detail: str) -> Result:
    return Result(name, Status.SKIP, detail)


def warn(name: str, detail: str, mend: str) -> Result:
    return Result(name, Status.WARN, detail, mend)


def fail(name: str, detail: str, mend: str) -> Result:
    return Result(name, Status.FAIL, detail, mend)
