"""ACL signatures: what RocketMQ's own clients add to a request (``AclClientRPCHook``; the same for ACL 1.0 and 2.0)."""

import base64
import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass

from lagwise.config import RocketmqCluster
from lagwise.platform.secrets import resolve


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs requests of one user."""

    access_key: str
    secret_key: bytes

    def signed(self, fields: Mapping[str, str]) -> dict[str, str]:
        """The fields with the user's key and a signature: HMAC-SHA1 over the values in the order of their names, and
        over the body, which no request of ours has."""
        named = {**fields, "AccessKey": self.access_key}
        content = "".join(named[name] for name in sorted(named)).encode()
        digest = hmac.new(self.secret_key, content, hashlib.sha1).digest()
        return {**named, "Signature": base64.b64encode(digest).decode()}


def signer_of(cluster: RocketmqCluster) -> Signer | None:
    """The signer of a cluster that asks for one. Raises ConfigError where a secret is not there."""
    if cluster.access_key is None or cluster.secret_key is None:
        return None
    return Signer(resolve(cluster.access_key), resolve(cluster.secret_key).encode())
