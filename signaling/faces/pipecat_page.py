"""Pipecat's ready-made page at `/client/`, where `pipecat-ai-small-webrtc-prebuilt` is installed.

It takes its microphone through code that it loads from the internet, so without that it does not
run. The package is not imported: it prints, and all that is wanted is where its files are.
"""

import importlib.util
from pathlib import Path

from starlette.staticfiles import StaticFiles

AT = "/client"
PACKAGE = "pipecat_ai_small_webrtc_prebuilt"


def page() -> StaticFiles | None:
    """None where the package is not installed."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    return StaticFiles(directory=Path(spec.origin).parent / "client" / "dist", html=True)
