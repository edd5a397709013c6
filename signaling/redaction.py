"""What must not reach a log, taken out of its text: keys, call ids, passwords, query strings.

Nothing here writes such a thing in the first place; this catches what a library logs at debug level
or puts into a traceback. Pure but for `Redacted`, the formatter that applies it.
"""

import ipaddress
import logging
import re

HIDDEN = "[hidden]"
MIN_LITERAL = 8  # characters; a shorter secret would take half the log with it

_IS = r"""['"]?\s*[:=,]\s*b?['"]?"""  # between a name and its value: in a header, JSON or a repr
_RULES = tuple(
    (hints, re.compile(pattern), replacement)
    for hints, pattern, replacement in (  # without a hint in lower case there is nothing to find
        (("rtc_",), r"(rtc_[A-Za-z0-9_-]{24})_[A-Za-z0-9_-]{22}", rf"\1_{HIDDEN}"),
        (("api-key.",), r"(openai-insecure-api-key\.)[\w.~+/=-]+", rf"\1{HIDDEN}"),
        (("ek_", "sk-"), r"\b(ek_|sk-)[\w.~+/=-]+", rf"\1{HIDDEN}"),
        # a message of a WebSocket
        (("< ", "> "), r"([<>] (?:TEXT|BINARY|CONT) ).+", rf"\1{HIDDEN}"),
        (("bearer",), r"(?i)(bearer\s+)[\w.~+/=-]+", rf"\1{HIDDEN}"),
        (
            ("authorization",),
            rf"(?i)(authorization{_IS}(?:basic\s+|bearer\s+)?)[^'\"\r\n]+",
            rf"\1{HIDDEN}",
        ),
        (
            ("sec-websocket-protocol",),
            rf"(?i)(sec-websocket-protocol{_IS})[^'\"\r\n]+",
            rf"\1{HIDDEN}",
        ),
        (
            ("pwd", "passw", "secret", "credential", "api"),
            rf"(?i)((?:pwd|passw(?:or)?d|secret|credential|api[_-]?key){_IS})[^\s'\",;&)}}\]\\]+",
            rf"\1{HIDDEN}",
        ),
        (("?", "&"), r"([?&][\w.%-]+=)[^\s&#'\"]+", rf"\1{HIDDEN}"),
        (("query_string",), rf"(query_string{_IS})[^'\"]+", rf"\1{HIDDEN}"),
        (("@",), r"(\b[A-Za-z][A-Za-z0-9+.-]{0,15}://)[^\s/@'\"]*@", rf"\1{HIDDEN}@"),
        (
            ("instructions", "transcript"),
            rf"(?i)((?:instructions|transcript){_IS})(?:[^'\"\\]|\\.)+",
            rf"\1{HIDDEN}",
        ),
    )
)


def redact(text: str, secrets: tuple[str, ...] = ()) -> str:
    """`text` without what the rules find, and without the literal `secrets`."""
    folded = text.lower()
    for hints, pattern, replacement in _RULES:
        for hint in hints:
            if hint in folded:
                text = pattern.sub(replacement, text)
                break
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text


def mask(host: str) -> str:
    """The network of a client address: /24 of IPv4, /48 of IPv6; what is no address stays out."""
    try:
        ip = ipaddress.ip_address(host)
    except ValueError:
        return "-"
    if ip.version == 4:
        return f"{host.rpartition('.')[0]}.0/24"
    return str(ipaddress.ip_network((ip, 48), strict=False))


class Redacted(logging.Formatter):
    """Formats a record, traceback included, and redacts the result."""

    def __init__(self, secrets: tuple[str, ...]) -> None:
        super().__init__("%(asctime)s %(levelname)s %(name)s %(message)s")
        self._secrets = tuple(secret for secret in secrets if len(secret) >= MIN_LITERAL)

    def format(self, record: logging.LogRecord) -> str:
        return redact(super().format(record), self._secrets)
