"""A pytest plugin for guests: under software emulation compiling takes many times longer."""

from relayctl.datapath import xdp

COMPILE_S = 240.0


def pytest_configure() -> None:
    be_patient()


def be_patient() -> None:
    """Wait longer for the compiler than the product does."""
    xdp._COMPILE_S = COMPILE_S
