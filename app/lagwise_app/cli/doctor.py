"""Is everything in order: the machine, the cluster, the settings."""

from typing import TYPE_CHECKING

import click

from lagwise_app.cli.shared import CommandSettings, bootstrap_option, data_option, json_option, require_clients
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from rich.text import Text

    from lagwise.config import Config
    from lagwise_app.doctor.diagnosis import Diagnosis


@click.command(short_help="Check everything, and say what to do about it.")
@bootstrap_option
@data_option
@click.option("--spark/--no-spark", default=True, help="Whether to start Spark, which takes 10 to 40 s. Default: yes.")
@click.option("--repair", is_flag=True, help="Read every file of the lake and set damaged ones aside, after asking.")
@click.option("--yes", is_flag=True, help="With --repair: do not ask.")
@json_option("the checks")
@click.pass_context
def doctor(
    context: click.Context, bootstrap: str | None, data: str | None, spark: bool, repair: bool, yes: bool, as_json: bool
) -> None:
    """Check Java, Spark, brokers and privileges, lake, database, disk and memory.

    Says for each whether it is ok, and if not, what to do. Exits 1 if anything failed; a warning is not a failure.
    With --data and without a settings file, the settings are those that Lagwise last ran with on that data.

    With --repair only the lake is checked, and thoroughly: every file is read. It lists what is damaged and what
    becomes of it, asks, and then moves damaged files to the folder `quarantine` of the lake and takes them out of their
    tables. Exits 1 if damage remains.

    \b
      lagwise doctor --bootstrap broker:9092
      lagwise doctor --no-spark --json
      lagwise doctor --repair
    """
    from dataclasses import asdict

    from lagwise.platform import logs
    from lagwise_app.doctor.checks import diagnoses
    from lagwise_app.doctor.diagnosis import Diagnosis, Result

    logs.configure("doctor")
    settings: CommandSettings = context.obj
    last_run = None if bootstrap else settings.load_last_run(data)
    config = last_run[0] if last_run else settings.load(bootstrap=bootstrap, data=data)
    if repair:
        from lagwise_app.cli.doctor_repair import repair_lake

        context.exit(0 if repair_lake(config, yes=yes, as_json=as_json) else 1)
    if yes:
        raise click.UsageError("--yes belongs to --repair")
    found = []
    if last_run:
        said = f"those that Lagwise last ran with on this data ({last_run[1]})"
        found.append(Diagnosis("settings", Result.OK, logs.clean(said)))
    if as_json:
        found += diagnoses(config, start_spark=spark)
        print_json({"ok": all(d.result is not Result.FAILED for d in found), "checks": [asdict(d) for d in found]})
    else:
        from lagwise_app.terminal import output

        console = output.console()
        for diagnosis in found:
            console.print(_line(diagnosis))
        with console.status("checking …") as progress:
            for diagnosis in diagnoses(config, start_spark=spark, progress=lambda what: progress.update(f"{what} …")):
                found.append(diagnosis)
                console.print(_line(diagnosis))
    context.exit(1 if any(d.result is Result.FAILED for d in found) else 0)


def _line(diagnosis: "Diagnosis") -> "Text":
    """One check of the doctor, with its advice on a line of its own."""
    from rich.text import Text

    from lagwise_app.doctor.diagnosis import Result
    from lagwise_app.terminal.words import plain

    mark, style = {
        Result.OK: ("✓", "green"),
        Result.WARNING: ("!", "bold yellow"),
        Result.FAILED: ("✗", "bold red"),
    }[diagnosis.result]
    line = Text(f"{mark} ", style=style).append_text(plain(diagnosis.check)).append(": ", style="")
    line.append_text(plain(diagnosis.found))
    if diagnosis.advice:
        line.append("\n  → ", style=style).append_text(plain(diagnosis.advice))
    return line


def _try_out(config: "Config") -> int:
    """Everything about settings that can be tried without a network.

    References, the file of the sign-in, rules, database, librdkafka's own settings. Returns how many references were
    resolved. Raises LagwiseError.
    """
    from lagwise.config.auth_file import check_auth_file
    from lagwise.config.references import resolve_everything
    from lagwise_alerts.outbox.database import open_engine
    from lagwise_alerts.rules.rule_file import load_rules

    resolved = resolve_everything(config)
    if config.dashboard.sign_in is not None:
        check_auth_file(config.dashboard.sign_in.auth_file)
    load_rules(config.alerts.rules_file, [channel.name for channel in config.alerts.channels])
    open_engine(config.database_url).dispose()
    if config.clusters:
        require_clients(config)
        from lagwise_collectors.run import check_settings

        for cluster in config.clusters:
            check_settings(cluster)
    return resolved


@click.command("config", short_help="Show the settings in effect, secrets redacted.")
@click.option("--check", is_flag=True, help="Only say whether the settings can be used.")
@json_option("the settings")
@click.pass_obj
def config_command(settings: CommandSettings, check: bool, as_json: bool) -> None:
    """Show the settings in effect: file and environment together, secrets redacted.

    Of the addresses of channels, the heartbeat and Flink only scheme and host are shown: the rest may be a token.

    With --check nothing is shown: references, the file of the sign-in, alert rules, the database's address and
    librdkafka's settings are tried, without connecting to anything.

    Every key is described in docs/reference/configuration.md.

    \b
      lagwise config
      lagwise --config lagwise.yaml config --check
    """
    from lagwise.config.secrecy import shown

    config = settings.load()
    if check:
        from lagwise.domain.humanise import plural

        names = _try_out(config)
        click.echo(
            f"the settings can be used: {plural(len(config.clusters), 'cluster')}, "
            f"{plural(names, 'reference')} to secrets resolved"
        )
        return
    if as_json:
        print_json(shown(config))
    else:
        import yaml

        click.echo(yaml.safe_dump(shown(config), sort_keys=False, allow_unicode=False), nl=False)
