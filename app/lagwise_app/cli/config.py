"""``lagwise config``: the settings in effect, and whether they can be used."""

from typing import TYPE_CHECKING

import click

from lagwise_app.cli.shared import CommandSettings, json_option, require_clients
from lagwise_app.terminal.json_output import print_json

if TYPE_CHECKING:
    from lagwise.config import Config


def _check_settings(config: "Config") -> int:
    """Check everything in the settings that needs no network: references, sign-in file, rules, database, librdkafka.

    Returns how many references were resolved. Raises LagwiseError.
    """
    from lagwise.config.auth_file import check_auth_file
    from lagwise.config.load import resolve_everything
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
@click.option("--check", is_flag=True, help="Only check whether the settings are valid.")
@json_option("the settings")
@click.pass_obj
def config_command(settings: CommandSettings, check: bool, as_json: bool) -> None:
    """Show the settings in effect, from file and environment, with secrets redacted.

    Addresses of channels, the heartbeat and Flink are cut to scheme and host, because the rest may hold a token.

    With --check, nothing is shown. References, sign-in file, alert rules, database address and librdkafka settings are
    checked without any connection.

    docs/reference/configuration.md describes every key.

    \b
      lagwise config
      lagwise --config lagwise.yaml config --check
    """
    from lagwise.config.secrecy import redacted

    config = settings.load()
    if check:
        from lagwise.domain.humanise import plural

        references = _check_settings(config)
        click.echo(
            f"the settings are valid: {plural(len(config.clusters), 'cluster')}, "
            f"{plural(references, 'secret reference')} resolved"
        )
        return
    if as_json:
        print_json(redacted(config))
    else:
        import yaml

        click.echo(yaml.safe_dump(redacted(config), sort_keys=False, allow_unicode=False), nl=False)
