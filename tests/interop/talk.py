"""One client of Python, one call: `python -m tests.interop.talk '{"client": "aiortc", …}'`.

Options: client, url, key, microphone (WAV to say), record (WAV of what came back), interrupts,
restarts, down, and those of the client. Prints the report of `converse`, or {"error"}, as JSON.
"""

import asyncio
import json
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tests.interop import sdk_caller, stock_aiortc, webrtcbin
from tests.interop.conversation import Talker, converse
from tests.lab import speech

_Options = Mapping[str, Any]


def _aiortc(options: _Options) -> Talker:
    microphone = Path(options["microphone"])
    return stock_aiortc.Aiortc(options["url"], options["key"], microphone, options["events"])


def _webrtcbin(options: _Options) -> Talker:
    return webrtcbin.Webrtcbin(options["url"], options["key"], Path(options["microphone"]))


_CLIENTS: Mapping[str, Callable[[_Options], Talker]] = {
    "aiortc": _aiortc,
    "webrtcbin": _webrtcbin,
    "sdk": sdk_caller.of,
}


async def talk(options: _Options) -> dict[str, Any]:
    client = _CLIENTS[options["client"]](options)
    try:
        return await converse(client, options["interrupts"], restarts=options["restarts"])
    finally:
        speech.write_wav(Path(options["record"]), client.heard())


def main() -> None:
    try:
        report = asyncio.run(talk(json.loads(sys.argv[1])))
    except Exception as error:  # of a client that may do anything
        report = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(report), flush=True)
    os._exit(0)  # threads of a broken client keep nobody


if __name__ == "__main__":
    main()
