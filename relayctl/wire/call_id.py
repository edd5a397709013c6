"""The call id: where a call lives, and a secret that only its client knows.

`rtc_` + the call's first route token in base64url letters + `_` + 22 random base64url characters.
Any replica that has the route keys opens the token and finds the owner without a look-up; the
owner compares the secret. The token alone is visible in every STUN packet, so it is not enough.
"""

import re
from dataclasses import dataclass, field

SECRET_LENGTH = 22  # characters, 132 bits

_CALL_ID = re.compile(r"rtc_([A-Za-z0-9_-]{24})_([A-Za-z0-9_-]{22})")
_TO_URL = str.maketrans("+/", "-_")
_FROM_URL = str.maketrans("-_", "+/")


class CallIdError(ValueError):
    """The text is no call id of ours."""


@dataclass(frozen=True, slots=True)
class CallId:
    token: str
    secret: str = field(repr=False)

    def render(self) -> str:
        return f"{self.public}_{self.secret}"

    @property
    def public(self) -> str:
        """The part that may stand in a log."""
        return f"rtc_{self.token.translate(_TO_URL)}"


def parse(text: str) -> CallId:
    """The inverse of `CallId.render`. Raises `CallIdError`, whose message has no secret."""
    match = _CALL_ID.fullmatch(text)
    if match is None:
        raise CallIdError(f"no call id: {len(text)} characters, want rtc_<24>_<22>")
    return CallId(match[1].translate(_FROM_URL), match[2])
