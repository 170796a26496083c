"""The reference of the settings, made from their models: a page with a table, and a commented YAML to copy."""

import ast
import inspect
import itertools
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_origin

import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lagwise.config import Config
from lagwise.config.errors import models_of, tag_of

_WIDTH = 100
#: Values of the YAML's entries that have no default, or whose default would leave no entry to show, by the end of the
#: key.
_EXAMPLES: dict[str, Any] = {
    "clusters[].bootstrap": "broker-1:9092,broker-2:9092",
    "clusters[rocketmq].name_servers": "namesrv-1:9876,namesrv-2:9876",
    "clusters[rocketmq].access_key": "lagwise",
    "clusters[rocketmq].secret_key": "${env:LAGWISE_SECRET_ROCKETMQ}",
    "local_offsets.path": "/mnt/shared/rocketmq-offsets/*/*/offsets.json",
    "lag_objectives[].lag_objective_seconds": 60.0,
    "external_offsets[spark].path": "s3://jobs/checkpoints/*",
    "external_offsets[sql].url": "${env:LAGWISE_SECRET_OFFSETS_URL}",
    "external_offsets[sql].query": 'select "group", topic, "partition", "offset" from offsets',
    "external_offsets[files].path": "/var/lib/billing/offsets.json",
    "external_offsets[flink].url": "http://jobmanager:8081",
    "nodes[].cores": 8.0,
    "server.tokens[].name": "payments-team",
    "server.tokens[].token": "${env:LAGWISE_SECRET_PAYMENTS_TEAM}",
    "channels[webhook].url": "https://hooks.example/lagwise",
    "channels[alertmanager_webhook].url": "https://receiver.example/alerts",
    "channels[alertmanager].url": "http://alertmanager:9093",
    "channels[pagerduty].routing_key": "${env:LAGWISE_SECRET_PAGERDUTY}",
    "channels[slack].url": "${env:LAGWISE_SECRET_SLACK_URL}",
    "channels[teams].url": "${env:LAGWISE_SECRET_TEAMS_URL}",
    "channels[email].host": "smtp.example",
    "channels[email].username": "lagwise",
    "channels[email].password": "${env:LAGWISE_SECRET_SMTP}",
    "channels[email].sender": "lagwise@example.com",
    "channels[email].to": ["on-call@example.com"],
    "channels[apprise].url": "${env:LAGWISE_SECRET_APPRISE_URL}",
    "maintenance[].name": "sunday-upgrade",
    "maintenance[].days": ["sun"],
    "maintenance[].start_time": "22:30",
    "maintenance[].end_time": "01:00",
    "heartbeat.url": "${env:LAGWISE_SECRET_HEARTBEAT_URL}",
    "otlp.url": "http://127.0.0.1:4318/v1/metrics",
    "sign_in.auth_file": "/etc/lagwise/auth.toml",
    "teams[].name": "payments",
    "teams[].members": ["payments-dev"],
}


@dataclass(frozen=True, slots=True)
class Setting:
    """A key of the settings, or a section of them."""

    name: str
    key: str
    """Its path: ``clusters[].name``; ``[sql]`` is an entry of that type."""
    variable: str
    meaning: str
    field: FieldInfo
    allowed: str
    """What it may be, in words; empty for a section and for a list of sections."""
    below: tuple[tuple["Setting", ...], ...]
    """What a section has, or what each kind of entry of a list has."""
    is_list: bool


def settings_of(model: type[BaseModel], key: str = "", variable: str = "LAGWISE_") -> Iterator[Setting]:
    """The settings of a model, in the order in which it declares them."""
    schema = model.model_json_schema(mode="validation")
    meanings = _meanings(model)
    for name, field in model.model_fields.items():
        path, env = f"{key}{name}", f"{variable}{name.upper()}"
        inner = models_of(field.annotation)
        is_list = bool(inner) and get_origin(field.annotation) is tuple
        allowed = "" if inner else _allowed(schema["properties"][name], schema)
        if is_list:
            entries = [(one, _entry(one) if len(inner) > 1 else "") for one in inner]
            below = tuple(tuple(settings_of(one, f"{path}[{kind}].", f"{env}__0__")) for one, kind in entries)
        else:
            below = tuple(tuple(settings_of(one, f"{path}.", f"{env}__")) for one in inner)
        yield Setting(name, path, env, " ".join(meanings.get(name, "").split()), field, allowed, below, is_list)


def page() -> str:
    """Every setting: key, environment variable, what it may be, default, meaning."""
    return f"""# Settings

One YAML file: `--config FILE`, else `$LAGWISE_CONFIG`, else `lagwise.yaml` in the working directory. Every key is also
an environment variable, which wins over the file: `LAGWISE_`, then the key's path in capitals, joined by two
underscores, positions in a list as numbers (the `0` below; the first that is free adds an entry). Lists and maps can be
given whole, as YAML. Under `librdkafka` an underscore stands for the dot of librdkafka's own names
(`…__LIBRDKAFKA__SASL_MECHANISM` is `sasl.mechanism`).

Keys that end in `_seconds`, `_hours` or `_days` take a plain number of that unit, or a duration with units of its own:
`90s`, `1h30m`, `2d`.

Unknown keys and invalid values are rejected at the start, all at once, each with its path and what is allowed.

Secrets are not written into the file but named there: `${{env:NAME}}` is the environment variable `NAME`,
`${{file:/path}}` the content of a file. They are read at the last moment and redacted in everything that is shown.
Variables called `LAGWISE_SECRET_…` are never settings, so they can hold them.

Three variables are not settings: `LAGWISE_CONFIG` (above), `LAGWISE_DEBUG=1` (more logs, and stack traces on the
terminal) and `LAGWISE_SECRET_…`. What the demo fetches once is kept in `lagwise` below `XDG_CACHE_HOME`, by default
`~/.cache`.

`lagwise config` shows the settings in effect; `lagwise config --check` says whether they can be used.

[lagwise.yaml](lagwise.yaml) has every key with its default, commented out: copy what you want to change.

## An example

```yaml
data: /var/lib/lagwise
clusters:
  - name: shop
    bootstrap: broker-1:9093,broker-2:9093
    librdkafka:
      security.protocol: SASL_SSL
      sasl.mechanism: SCRAM-SHA-512
      sasl.username: lagwise
      sasl.password: ${{env:LAGWISE_SECRET_SHOP}}
    groups:
      exclude: ["console-consumer-.*"]
  - system: rocketmq
    name: shop-queue
    name_servers: namesrv-1:9876,namesrv-2:9876
    access_key: lagwise
    secret_key: ${{env:LAGWISE_SECRET_QUEUE}}
alerts:
  channels:
    - name: on-call
      url: ${{file:/etc/lagwise/webhook-url}}
      secret: ${{env:LAGWISE_SECRET_WEBHOOK}}
```

## Every key

`[]` stands for an entry of a list, `[slack]`, `[sql]` or `[rocketmq]` for one of that `type` or `system`, `*` for a
key of your choice.

{chr(10).join(_table())}
"""


def _table() -> list[str]:
    rows = ["| key | environment variable | may be | default | meaning |", "|---|---|---|---|---|"]
    for one in _flat(settings_of(Config)):
        cells = (f"`{one.key}`", f"`{one.variable}`", one.allowed or "list", _default(one.field), one.meaning)
        rows.append(f"| {' | '.join(map(cell, cells))} |")
    return rows


def cell(text: str) -> str:
    """A text as it can stand in a table's cell."""
    return text.replace("|", "\\|") if "\\|" not in text else text


def _flat(settings: Iterator[Setting] | tuple[Setting, ...]) -> Iterator[Setting]:
    """Everything that has a value: a list comes before what its entries have."""
    for one in settings:
        if one.is_list or not one.below:
            yield one
        for below in one.below:
            yield from _flat(below)


def example() -> str:
    """Every setting with its default, as YAML that is commented out."""
    return f"""# Every setting of Lagwise, with its default or an example. Written by `make docs`.
#
# Copy this file to lagwise.yaml and remove the # from what you want to change, and from the sections it is in. Lines
# with a space after the # are explanations. Below each stands what the key may be, and the environment variable that
# sets it. docs/reference/configuration.md has the rules.

{chr(10).join(_yaml(settings_of(Config), ""))}
"""


def _yaml(settings: Iterator[Setting] | tuple[Setting, ...], indent: str, *, is_entry: bool = False) -> Iterator[str]:
    """The lines of some settings; of an entry of a list, what names it and what it must have comes first."""
    ordered = sorted(settings, key=_rank) if is_entry else settings
    for position, one in enumerate(ordered):
        begins_entry = is_entry and position == 0
        here, dash = (indent, "- ") if begins_entry else (indent + "  " * is_entry, "")
        if begins_entry or (one.below and position) or (not indent and position):
            yield ""
        yield from _comment(one.meaning, here)
        if not one.below:
            yield from _comment(f"{one.allowed[0].upper()}{one.allowed[1:]}. {one.variable}", here)
            yield f"{here}#{dash}{one.name}: {_yaml_value(one)}"
            continue
        yield f"{here}#{one.name}:"
        for below in one.below:
            yield from _yaml(below, f"{here}  ", is_entry=one.is_list)


def _rank(setting: Setting) -> int:
    order = (setting.name in ("system", "type"), setting.name == "name", setting.field.is_required())
    return order.index(True) if any(order) and not setting.below else len(order)


def _comment(text: str, indent: str) -> list[str]:
    prefix = f"{indent}# "
    plain = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", text)  # the file is copied to where they lead nowhere
    return textwrap.wrap(
        plain, _WIDTH, initial_indent=prefix, subsequent_indent=prefix, break_long_words=False, break_on_hyphens=False
    )


def _yaml_value(setting: Setting) -> str:
    value = next((value for end, value in _EXAMPLES.items() if setting.key.endswith(end)), None)
    if value is None and setting.name in ("name", "type") and setting.field.is_required():
        value = setting.key.rpartition("[")[2].partition("]")[0] or setting.name
    if value is None and setting.field.is_required():
        value = setting.allowed.strip("`")  # the one value it may have
    if value is None:
        value = setting.field.get_default()
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, tuple | Path):
        value = list(value) if isinstance(value, tuple) else str(value)
    text = yaml.safe_dump(value, default_flow_style=True, allow_unicode=True, width=10_000).strip()
    return text.removesuffix("...").strip()


def _meanings(model: type[BaseModel]) -> dict[str, str]:
    """What each field means: the docstring below it, in the class or in the one it comes from."""
    found: dict[str, str] = {}
    for kind in reversed(model.__mro__):
        if kind is BaseModel or not issubclass(kind, BaseModel):
            continue
        [defined] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
        assert isinstance(defined, ast.ClassDef)
        for field, below in itertools.pairwise(defined.body):
            match field, below:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                    found[name] = text
    return found


def _entry(model: type[BaseModel]) -> str:
    """The tag of an entry, where there are several kinds; empty for the system that a cluster has by default."""
    system = model.model_fields.get("system")
    return "" if system is not None and not system.is_required() else tag_of(model) or ""


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default()
    if value is None:
        return "null"
    if isinstance(value, tuple):
        return "`[" + ", ".join(f"'{v}'" for v in value) + "]`" if value else "`[]`"
    if isinstance(value, dict):
        return "`{}`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"  # as YAML has it
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def _allowed(schema: dict[str, Any], root: dict[str, Any]) -> str:
    """What a setting may be, in words, from its JSON schema."""
    if "anyOf" in schema:
        return " or ".join(dict.fromkeys(_allowed(option, root) for option in schema["anyOf"]))
    if "const" in schema:
        return f"`{schema['const']}`"
    if "enum" in schema:
        return " or ".join(f"`{value}`" for value in schema["enum"])
    kind = schema.get("type")
    if kind == "array":
        return f"list of {_allowed(schema['items'], root)}"
    if kind == "object":
        return f"map of text to {_allowed(schema['additionalProperties'], root)}"
    if kind == "string":
        if schema.get("format") == "path":
            return "path"
        return str(schema.get("allowed", "text"))
    if kind in ("number", "integer"):
        number = "whole number" if kind == "integer" else "number"
        return number + _bounds(schema) + (", or a duration" if "duration" in schema else "")
    return {"boolean": "true or false", "null": "null"}[str(kind)]


def _bounds(schema: dict[str, Any]) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f" {low:g} to {high:g}"
    if low is not None:
        return f" ≥ {low:g}"
    if "exclusiveMinimum" in schema:
        return f" > {schema['exclusiveMinimum']:g}"
    return ""
