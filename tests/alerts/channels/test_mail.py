"""Mail through real SMTP servers: TLS, signing in, refusals, and servers that do not answer."""

import logging
import socket
import time
from collections.abc import Callable
from email import message_from_bytes
from email.policy import default
from typing import Any

import pytest

from lagwise_alerts.channels import Channel
from lagwise_alerts.channels.base import DeliveryOutcome
from tests.alerts.channels.documents import DOCUMENTS, message
from tests.alerts.channels.mail_server import MailServer, mail_server, silent_server
from tests.alerts.channels.tls import Authority

Make = Callable[..., Channel]
PASSWORD = "correct horse battery staple"


def settings(port: int, **more: Any) -> dict[str, Any]:
    given = {"host": "127.0.0.1", "port": port, "sender": "lagwise@shop.example", "to": ["a@shop.example"]}
    return given | {"security": "none"} | more


def signed_in(server: MailServer, trusted: Authority, password: str = PASSWORD) -> dict[str, Any]:
    more = {"security": "starttls", "ca_file": trusted.file, "username": "lagwise", "secret_password": password}
    return settings(server.port, **more)


def test_it_arrives_whole(channel: Make) -> None:
    with mail_server() as server:
        outcome = channel("email", **settings(server.port, to=["a@shop.example", "b@x.example"])).send(message())
    assert outcome == DeliveryOutcome()
    (mail,) = server.mails
    assert (mail.mail_from, mail.rcpt_tos) == ("lagwise@shop.example", ["a@shop.example", "b@x.example"])
    read = message_from_bytes(mail.content or b"", policy=default)
    assert DOCUMENTS["firing"]["summary"] in read.get_content()


def test_a_hostile_name_adds_no_recipient(channel: Make) -> None:
    with mail_server() as server:
        assert channel("email", **settings(server.port)).send(message("hostile")) == DeliveryOutcome()
    (mail,) = server.mails
    assert mail.rcpt_tos == ["a@shop.example"]
    assert message_from_bytes(mail.content or b"", policy=default)["Bcc"] is None


@pytest.mark.parametrize("at_once", [False, True], ids=["starttls", "tls"])
def test_over_tls_of_the_named_authority(channel: Make, trusted: Authority, at_once: bool) -> None:
    with mail_server(trusted.server, tls_at_once=at_once) as server:
        more = settings(server.port, security="tls" if at_once else "starttls", ca_file=trusted.file)
        assert channel("email", **more).send(message()) == DeliveryOutcome()
    assert server.in_the_clear == [False]


@pytest.mark.parametrize("at_once", [False, True], ids=["starttls", "tls"])
def test_an_untrusted_certificate_is_refused(channel: Make, trusted: Authority, at_once: bool) -> None:
    with mail_server(trusted.server, tls_at_once=at_once) as server:
        outcome = channel("email", **settings(server.port, security="tls" if at_once else "starttls")).send(message())
    assert "CERTIFICATE_VERIFY_FAILED" in (outcome.error or "")
    assert not server.mails


def test_a_server_without_tls_gets_nothing_in_the_clear(channel: Make) -> None:
    with mail_server() as server:
        outcome = channel("email", **settings(server.port, security="starttls")).send(message())
    assert "Nothing is sent in the clear" in (outcome.error or "")
    assert not server.mails


def test_it_signs_in(channel: Make, trusted: Authority) -> None:
    with mail_server(trusted.server, password=PASSWORD) as server:
        assert channel("email", **signed_in(server, trusted)).send(message()) == DeliveryOutcome()
    assert server.signed_in == ["lagwise"]
    assert len(server.mails) == 1


def test_a_wrong_password_is_a_refusal_and_stays_secret(
    channel: Make, trusted: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    with mail_server(trusted.server, password="another") as server:
        outcome = channel("email", **signed_in(server, trusted)).send(message())
    assert "535" in (outcome.error or "")
    assert outcome.refused
    lagwise_log = "".join(r.getMessage() for r in caplog.records if not r.name.startswith("mail."))  # the server's own
    assert PASSWORD not in lagwise_log + (outcome.error or "")


@pytest.mark.parametrize(
    ("answer", "refused"), [("451 try later", False), ("554 5.7.1 no \x1b[2J", True), ("552 too big", True)]
)
def test_what_the_server_answers(channel: Make, answer: str, refused: bool) -> None:
    with mail_server(data_answer=answer) as server:
        outcome = channel("email", **settings(server.port)).send(message())
    assert (outcome.error or "").startswith(f"answered {answer[:3]}")
    assert outcome.refused is refused
    assert (outcome.error or "").isprintable()


@pytest.mark.parametrize(("answer", "refused"), [("450 busy", False), ("550 no such user", True)])
def test_no_address_is_taken(channel: Make, answer: str, refused: bool) -> None:
    with mail_server(to_answers={"a@shop.example": answer}) as server:
        outcome = channel("email", **settings(server.port)).send(message())
    assert f"refused every address: {answer}" in (outcome.error or "")
    assert outcome.refused is refused


def test_an_address_that_is_not_taken_costs_the_others_nothing(channel: Make, caplog: pytest.LogCaptureFixture) -> None:
    with mail_server(to_answers={"gone@shop.example": "550 no such user"}) as server:
        more = settings(server.port, to=["gone@shop.example", "a@shop.example"])
        outcome = channel("email", **more).send(message())
    assert outcome.error is None
    assert "not for 1 of the addresses, gone@shop.example: 550 no such user" in outcome.answer
    assert outcome.answer in caplog.text
    assert [mail.rcpt_tos for mail in server.mails] == [["a@shop.example"]]


class TestServersThatDoNotAnswer:
    def test_connection_refused(self, channel: Make) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            outcome = channel("email", **settings(taken.getsockname()[1])).send(message())
        assert "cannot connect" in (outcome.error or "")
        assert not outcome.refused

    @pytest.mark.parametrize("greeting", [b"", b"220 hello\r\n"], ids=["no greeting", "no answer"])
    def test_it_hangs(self, channel: Make, greeting: bytes) -> None:
        began = time.monotonic()
        with silent_server(greeting) as port:
            outcome = channel("email", **settings(port, timeout_seconds=0.3)).send(message())
        assert outcome.error == "no answer within 0.3 s"
        assert time.monotonic() - began < 5

    def test_it_talks_nonsense(self, channel: Make) -> None:
        with silent_server(b"SSH-2.0-nonsense\r\n") as port:
            outcome = channel("email", **settings(port)).send(message())
        assert outcome.error
        assert outcome.error.isprintable()


def test_it_checks_what_can_be_checked_without_the_server(channel: Make, trusted: Authority) -> None:
    one = channel("email", host="smtp.example", sender="a@b.example", to=["c@d.example"], ca_file=trusted.file)
    one.check()
    assert one.receiver == "smtp.example:587"
