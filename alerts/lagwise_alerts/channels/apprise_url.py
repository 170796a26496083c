"""Any service that Apprise knows, through Apprise: a title and plain text.

Each message is sent by a process of its own (:mod:`lagwise_alerts.channels.apprise_process`). Its log is
the reason of a failure, shown without the parts of the address. Apprise is an optional extra (``lagwise[apprise]``).
"""

import json
import subprocess
import sys
from dataclasses import asdict

from lagwise.config.channels import Apprise
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import resolve_address
from lagwise_alerts.channels import apprise_process
from lagwise_alerts.channels.apprise_process import AppriseOrder, AppriseResult, service_of
from lagwise_alerts.channels.base import Channel, DeliveryOutcome, Message
from lagwise_alerts.channels.http import address_parts, harmless
from lagwise_alerts.channels.message_text import MessageText, message_text, some_lines
from lagwise_alerts.model import Severity

_LONGEST_SERVICE = 40
#: Limits of the list in a summary: many services take only some thousand characters.
_MAX_LINES, _LONGEST_LINE = 10, 140


def text(words: MessageText) -> str:
    """The body, for services that show plain text."""
    lines = [f"{label}: {fact}" for label, fact in words.facts] + some_lines(words.lines, _MAX_LINES, _LONGEST_LINE)
    return "\n".join([*lines, f"First command: {words.first_command}", *([words.link] if words.link else [])])


def notify_type(words: MessageText) -> str:
    """The severity as Apprise's ``NotifyType``."""
    if words.is_over:
        return "success"
    return {Severity.PAGE: "failure", Severity.WARN: "warning", Severity.INFO: "info"}[words.severity]


class AppriseChannel(Channel[Apprise]):
    """Sends through one URL of Apprise."""

    @property
    def receiver(self) -> str:
        """The kind of service: hosts of many carry the token."""
        try:
            scheme = resolve_address(self._settings.url).partition("://")[0]
        except ConfigError:
            return "an address that cannot be read"
        return f"{scheme if scheme.isalnum() and len(scheme) <= _LONGEST_SERVICE else 'a service'}, through Apprise"

    def check(self) -> None:
        """Check that Apprise is installed and knows the service. Raises ConfigError."""
        service_of(resolve_address(self._settings.url), self._settings.silence_seconds)

    def send(self, message: Message) -> DeliveryOutcome:
        """Send one message through Apprise."""
        words = message_text(json.loads(message.body))
        limit = self._settings.attempt_timeout_seconds
        try:
            self.check()
            url = resolve_address(self._settings.url)
            done = _run_apprise(
                AppriseOrder(
                    url,
                    f"{words.symbol} {words.title}",
                    text(words),
                    notify_type(words),
                    self._settings.silence_seconds,
                    limit,
                )
            )
        except ConfigError as error:
            return DeliveryOutcome(str(error))
        except subprocess.TimeoutExpired:
            return DeliveryOutcome(f"not done within {limit:g} s")
        if done.sent:
            return DeliveryOutcome(answer="Apprise sent it")
        why = harmless(done.log, address_parts(url))
        return DeliveryOutcome(f"Apprise could not send it{f': {why}' if why else ''}")


def _run_apprise(order: AppriseOrder) -> AppriseResult:
    """Run the process. Raises subprocess.TimeoutExpired, having ended the process."""
    ran = subprocess.run(
        [sys.executable, "-P", "-m", apprise_process.__name__],
        input=json.dumps(asdict(order)),
        capture_output=True,
        text=True,
        timeout=order.limit_seconds,
        check=False,
    )
    try:
        return AppriseResult(**json.loads(ran.stdout))
    except (ValueError, TypeError):
        return AppriseResult(sent=False, log=f"it ended with status {ran.returncode}")
