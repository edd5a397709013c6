import errno
import socket
import ssl

import pytest
from websockets.exceptions import ConnectionClosedError, InvalidMessage
from websockets.frames import Close

from transceiver.backends.realtime.faults import Fault, lost, of_status, reason

_REFUSED = "Connect call failed ('127.0.0.1', 8090)"  # as asyncio words it


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, _REFUSED), "Connection refused"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "Name or service not"),
        (TimeoutError(), "nothing said within connect_s"),
        (TimeoutError(errno.ETIMEDOUT, "x"), "Connection timed out"),
        (ssl.SSLError(1, "[SSL] x"), "TLS: "),
        (ConnectionClosedError(Close(4000, "sk-hunter2"), None), "lost, code 4000"),
        (InvalidMessage("sk-hunter2"), "InvalidMessage"),
        (OSError("Multiple exceptions: sk-hunter2"), "OSError"),
    ],
)
def test_says_in_words_why(error: Exception, words: str) -> None:
    assert reason(error).startswith(words)
    assert "hunter2" not in reason(error)


def test_a_close_without_a_code_is_lost() -> None:
    assert (lost(None), lost(4000)) == ("lost", "lost, code 4000")


def test_statuses() -> None:
    assert [of_status(s) for s in (401, 403)] == [Fault.UNAUTHORIZED] * 2
    assert [of_status(s) for s in (429, 503)] == [Fault.OVERLOADED] * 2
    assert of_status(404) is Fault.UNAVAILABLE
