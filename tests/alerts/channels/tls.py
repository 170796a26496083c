"""Certificates for servers on loopback: an authority of the test's own, or one that nobody vouches for."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import pytest
import trustme


@dataclass(frozen=True)
class Authority:
    """What a server presents, and the file that makes clients trust it."""

    server: ssl.SSLContext
    file: Path


def authority(folder: Path, host: str = "127.0.0.1") -> Authority:
    """A new authority and a certificate of it for a host."""
    ca = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ca.issue_cert(host).configure_cert(context)
    ca.cert_pem.write_to_path(str(folder / f"{host}.pem"))
    return Authority(context, folder / f"{host}.pem")


@pytest.fixture
def trusted(tmp_path: Path) -> Authority:
    """An authority for the loopback address."""
    return authority(tmp_path)
