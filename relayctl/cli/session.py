"""What every command shares: output form, where the relay is, and how to reach it."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import click

from relayctl.config import ENVIRONMENT, RelayConfig
from relayctl.datapath import xdp
from relayctl.datapath.base import DatapathError
from relayctl.inspect import reader
from relayctl.inspect.census import of_batches
from relayctl.inspect.pin_reader import kernel_record
from relayctl.inspect.pinned import open_pinned
from relayctl.inspect.reader import Place, Reader
from relayctl.inspect.records import ReadError, Record
from relayctl.wire.fields import ClusterSection
from relayctl.wire.settings import SettingsError, load

DEFAULT_CONFIG = Path("/etc/ferryline/relay.toml")
USAGE = 2  # exit code: the command line or the configuration is wrong

F = TypeVar("F", bound=Callable[..., Any])


class Failed(click.ClickException):
    """The command was right and did not succeed."""

    exit_code = 1


class ConfigError(click.ClickException):
    """The configuration cannot be used."""

    exit_code = USAGE


@dataclass
class Session:
    """Options that stand before or behind the verb. Tests bring their own openers."""

    output: str = "table"
    config: Path | None = None
    instance: str | None = None
    socket: Path | None = None
    environ: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    open_pins: reader.OpenPins = open_pinned
    unload: Callable[[str, str], None] = xdp.unload
    default_config: Path = DEFAULT_CONFIG
    told: bool = False

    @property
    def json(self) -> bool:
        return self.output == "json"

    def load_config(self, flags: Mapping[str, Any] | None = None) -> RelayConfig:
        """The whole configuration: file, environment, flags. Raises `ConfigError`."""
        try:
            text = self._config_text()
            return load(
                RelayConfig,
                toml=text,
                environ=self.environ,
                prefix=ENVIRONMENT,
                flags={"instance": self.instance, **(flags or {})},
            )
        except SettingsError as error:
            raise ConfigError("\n".join((*error.faults, *self._hint()))) from None

    def _hint(self) -> Iterator[str]:
        if not self._has_file():
            yield f"there is no {self.default_config}; give a file with --config"

    def _has_file(self) -> bool:
        return self.config is not None or self.default_config.exists()

    def clusters(self) -> tuple[ClusterSection, ...]:
        """Those of the configuration; none if there is no file."""
        return self.load_config().clusters if self._has_file() else ()

    def _config_text(self) -> str:
        path = self.config or self.default_config
        if not self._has_file():
            return ""
        try:
            return path.read_text()
        except OSError as error:
            raise ConfigError(f"{path}: {error.strerror}; give the file with --config") from None
        except UnicodeDecodeError as error:
            raise ConfigError(f"{path}: {error}; give the file with --config") from None

    def place(self) -> Place:
        """Where the relay to look at keeps its pins and its socket."""
        place = Place.of(self.load_config()) if self._has_file() else self._named_place()
        return place if self.socket is None else place.at_socket(self.socket)

    def _named_place(self) -> Place:
        if self.instance is not None:
            return Place.named(self.instance)
        if self.socket is not None:
            return Place.named(self.socket.stem)
        found = reader.instances()
        if len(found) == 1:
            return Place.named(found[0])
        seen = f"there are {', '.join(found)}" if found else "none is running here"
        raise click.UsageError(f"which relay? {seen}; say --config FILE or --instance NAME")

    def kernel(self) -> Record | None:
        """What the pins tell beside a daemon's answer; None if they cannot be read here."""
        place = self.place()
        try:
            pinned = self.open_pins(place.instance, place.bpffs)
        except (DatapathError, OSError):
            return None
        with contextlib.closing(pinned.datapath):
            return kernel_record(pinned, of_batches(pinned.batches()))

    @contextlib.contextmanager
    def reader(self) -> Iterator[Reader]:
        """The daemon if it runs, else its pins; stderr tells once which one, if not the daemon.

        A `ReadError` inside becomes `Failed`."""
        place = self.place()
        try:
            with contextlib.closing(reader.find(place, self.open_pins)) as found:
                if found.source == "pins" and not self.told:
                    self.told = True
                    text = f"{place.instance}: the daemon is not running, reading its maps"
                    click.echo(text, err=True)
                yield found
        except ReadError as error:
            raise Failed(str(error)) from None


def shared_options(command: F) -> F:
    """Add the options of `Session`; they may stand before or behind the verb."""

    def store(name: str) -> Callable[[click.Context, click.Parameter, Any], None]:
        def callback(context: click.Context, _: click.Parameter, value: Any) -> None:
            if value is not None:
                setattr(context.ensure_object(Session), name, value)

        return callback

    path = click.Path(path_type=Path)
    options: dict[str, tuple[tuple[str, ...], Any, str]] = {
        "socket": (("--socket",), path, "Unix socket of the daemon."),
        "instance": (("--instance",), str, "Name of the relay."),
        "config": (("--config",), path, f"Configuration file [default: {DEFAULT_CONFIG}]."),
        "output": (("-o", "--output"), click.Choice(["table", "json"]), "[default: table]"),
    }
    for name, (flags, kind, text) in options.items():
        command = click.option(
            *flags, type=kind, help=text, callback=store(name), expose_value=False
        )(command)
    return command


def with_session(command: Callable[..., Any]) -> Callable[..., Any]:
    """Hand the `Session` to a command as its first argument."""

    @functools.wraps(command)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        return command(click.get_current_context().ensure_object(Session), *args, **kwargs)

    return wrapped
