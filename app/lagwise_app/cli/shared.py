"""What the commands share: common options, settings, one-line errors, stopping on a signal."""

import contextlib
import importlib.util
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from lagwise.domain.humanise import plural
from lagwise.platform.error_codes import ErrorCode, code_of_system
from lagwise.platform.errors import (
    ConfigError,
    LagwiseError,
    LakeError,
    MissingRequirement,
    NewerThanProgram,
    UnreadableTable,
    with_code,
)
from lagwise.platform.log_events import LogEvent, event
from lagwise.platform.logs import clean, debugging
from lagwise.platform.program import program
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from lagwise.config import Config
    from lagwise.tables.store import Lake

#: The extra of Lagwise that installs a package.
_EXTRAS = {
    "confluent_kafka": "kafka",
    "pyspark": "spark",
    "py4j": "spark",
    "streamlit": "dashboard",
    "plotly": "dashboard",
    "starlette": "server",
    "uvicorn": "server",
    "opentelemetry": "otlp",
    "mcp": "mcp",
}

#: Under this name a context remembers that ``--json`` was given.
_AS_JSON = "lagwise_app.cli.as_json"

_Command = TypeVar("_Command", bound=Callable[..., Any])


class CommandSettings:
    """The global options. The commands that need the settings load them from here."""

    def __init__(self, config_file: Path | None) -> None:
        self.config_file = config_file

    def load(self, *, bootstrap: str | None = None, data: str | None = None) -> "Config":
        """The settings, with the options of the command line applied. Raises ConfigError."""
        from lagwise.config import load_config
        from lagwise_app.supervisor.effective_settings import linked, overridden

        return linked(overridden(load_config(self.config_file), bootstrap=bootstrap, data=data))

    def load_for(self, process: str, *, bootstrap: str | None = None, data: str | None = None) -> "Config":
        """Configure the log of a process, load its settings and log a summary of them, and bring the lake and the
        database of an older version up to date. Raises ConfigError, and NewerThanProgram where they are newer."""
        import logging

        from lagwise.platform import logs
        from lagwise.platform.private_files import make_state_folder
        from lagwise_app.supervisor.effective_settings import summary

        logs.configure(process)
        config = self.load(bootstrap=bootstrap, data=data)
        logs.configure(process, as_json=config.log_format == "json")
        with contextlib.suppress(OSError):  # the process reports this itself, and goes on as far as it can
            make_state_folder(config.state)
        log = logging.getLogger("lagwise")
        log.info("%s", summary(config), extra=event(LogEvent.STARTED))
        from lagwise.platform.health import ANALYSIS, COLLECTOR
        from lagwise_app.upgrade import upgrade_at_start

        upgrade_at_start(
            config,
            lambda done: log.info("%s", done, extra=event(LogEvent.UPGRADED)),
            makes_lake=process in (COLLECTOR, ANALYSIS),
        )
        return config

    def load_last_run(self, data: str | None) -> "tuple[Config, Path] | None":
        """The settings of the last run on a data folder, and their file.

        None without such a run, or where a settings file is given or found: that file counts then.
        """
        import os

        from lagwise.config import load_config
        from lagwise.config.load import settings_file
        from lagwise_app.supervisor.effective_settings import EFFECTIVE_SETTINGS

        if data is None or settings_file(self.config_file, os.environ) is not None:
            return None
        file = Path(data) / EFFECTIVE_SETTINGS
        return (load_config(file), file) if file.is_file() else None

    def load_of_run(self, data: str | None) -> "Config":
        """The settings of the last run on a data folder, or without one those that :meth:`load` loads."""
        last_run = self.load_last_run(data)
        return last_run[0] if last_run else self.load(data=data)


class LagwiseGroup(click.Group):
    """A group that lists its commands in the given order, and reports an error in one line without a stack trace."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.NoSuchOption as error:
            if not any(error.option_name in parameter.opts for parameter in self.params):
                raise
            place = f"It belongs before the command: {ctx.command_path} {error.option_name} … COMMAND"
            raise click.NoSuchOption(error.option_name, f"{error.message} {place}", ctx=error.ctx) from error
        except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
            raise  # click handles them; a closed pipe (`lagwise status | head`) is not an error of Lagwise
        except OSError as error:
            self._fail(ctx, error, clean(str(error)), code_of_system(error))
        except LagwiseError as error:
            self._fail(ctx, error, _lines(error), error.code)
        except ModuleNotFoundError as error:
            extra = _EXTRAS.get((error.name or "").partition(".")[0])
            if extra is None:
                raise
            missing = MissingRequirement(
                f"this command needs {error.name}: install lagwise[{extra}]", code=ErrorCode.EXTRA_MISSING
            )
            self._fail(ctx, missing, str(missing), missing.code)
        except Exception as error:
            said = f"unexpected {type(error).__name__}: {clean(str(error))} (--debug shows the stack trace)"
            self._fail(ctx, error, said, None)

    def _fail(self, ctx: click.Context, error: BaseException, message: str, code: ErrorCode | None) -> None:
        if debugging():
            raise error
        if ctx.meta.get(_AS_JSON):
            print_json({"error": {"code": code, "message": message}}, err=True)
        else:
            click.echo(f"lagwise: {with_code(message, code)}", err=True)
        ctx.exit(1)


def _lines(error: LagwiseError) -> str:
    """The message on one line. Only a ConfigError has several problems, one per line."""
    text = str(error)
    if isinstance(error, UnreadableTable):
        text += f"; `{program()} doctor` checks the lake, and `{program()} doctor --repair` quarantines damaged files"
    return "\n".join(clean(line) for line in text.split("\n")) if isinstance(error, ConfigError) else clean(text)


def require_clients(config: "Config") -> None:
    """Raise MissingRequirement where the client library of a watched system is not installed."""
    if any(cluster.system == "kafka" for cluster in config.clusters):
        require_package("confluent_kafka")


def require_package(module: str, who: str = "this command") -> None:
    """Raise MissingRequirement where a package is not installed. The message says ``who`` needs it, and names the extra
    that installs it.

    For packages that only a child process imports: its own error would end up in a log.
    """
    try:
        found = importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:
        found = False
    if not found:
        raise MissingRequirement(
            f"{who} needs {module}: install lagwise[{_EXTRAS[module.partition('.')[0]]}]",
            code=ErrorCode.EXTRA_MISSING,
        )


def json_option(what: str, more: str = "") -> Callable[[_Command], _Command]:
    """The option ``--json``. Its help says: Print ``what`` as JSON. ``more`` is a further sentence."""
    return click.option(
        "--json", "as_json", is_flag=True, callback=_remember_json, help=f"Print {what} as JSON. {more}".rstrip()
    )


def _remember_json(context: click.Context, _parameter: click.Parameter, as_json: bool) -> bool:
    context.meta[_AS_JSON] = as_json  # the commands' contexts share it, so that an error is reported as JSON, too
    return as_json


def data_option(command: _Command) -> _Command:
    """The option ``--data``, which overrides the settings."""
    return click.option(
        "--data", metavar="URI", help="Data folder or URI of the lake. Default: `data` in the settings."
    )(command)


def cluster_option(command: _Command) -> _Command:
    """The option ``--cluster`` of commands about one group."""
    return click.option(
        "--cluster", metavar="NAME", help="The cluster of the group, where several clusters have a group of this name."
    )(command)


def bootstrap_option(command: _Command) -> _Command:
    """The option ``--bootstrap``, which overrides the settings."""
    return click.option(
        "--bootstrap", metavar="HOST:PORT", help="The Kafka cluster. Default: `clusters` in the settings."
    )(command)


def once_option(command: _Command) -> _Command:
    return click.option("--once", is_flag=True, help="Run one round, then exit.")(command)


def require_once_with_json(as_json: bool, once: bool) -> None:
    """Raise UsageError for ``--json`` without ``--once``: a command that runs until a signal has no one result."""
    if as_json and not once:
        raise click.UsageError("--json prints the result of one round: use it with --once")


def print_answer(document: object, line: str, *, as_json: bool) -> None:
    """Print the answer of a command: as JSON, or as one line."""
    if as_json:
        print_json(document)
    else:
        click.echo(clean(line))


def open_lake(config: "Config") -> "Lake":
    """The lake of the settings. At its end, the command reports the damaged files that its answer leaves out."""
    from lagwise.tables.lake_version import check_version
    from lagwise.tables.tolerant import TolerantLake

    lake = TolerantLake(config.lake_uri, config.lake.resolved_storage_options())
    try:
        check_version(lake)
    except NewerThanProgram:
        raise
    except LakeError:
        pass  # the command itself says it, or repairs it

    def report() -> None:
        with contextlib.suppress(LakeError):  # the command itself has reported it
            for one in lake.left_out:
                rows = "rows" if one.rows is None else plural(one.rows, "row")
                click.echo(f"lagwise: {rows} left out: {clean(str(one))}; see `{program()} doctor`", err=True)

    click.get_current_context().call_on_close(report)
    return lake
