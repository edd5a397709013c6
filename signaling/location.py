"""Where a request comes from, for steering."""

from dataclasses import dataclass

from starlette.requests import HTTPConnection


@dataclass(frozen=True, slots=True)
class Where:
    """A place on Earth in degrees, or the name of a region, and how it became known."""

    latitude: float | None = None
    longitude: float | None = None
    region: str | None = None
    source: str = "default"


NOWHERE = Where()


class Locator:
    """Knows no places."""

    def locate(self, request: HTTPConnection) -> Where:
        return NOWHERE
