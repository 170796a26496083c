"""Tokens of SASL/OAUTHBEARER from a function that the settings name, as signers of cloud providers need them."""

import importlib
from collections.abc import Callable
from typing import Any

from lagwise.config import Cluster
from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError

#: Gets the text of ``sasl.oauthbearer.config``; returns the token, the second since 1970 at which it ends, and perhaps
#: the name of the principal and a dictionary of extensions: what confluent-kafka asks of its ``oauth_cb``.
TokenFunction = Callable[[str], Any]


def token_function(cluster: Cluster) -> TokenFunction | None:
    """The function that the settings of a cluster name; None where they name none. Raises ConfigError where it cannot
    be imported, or does not exist."""
    name = cluster.oauth_token_function
    if name is None:
        return None
    module, _, attribute = name.partition(":")
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:  # whatever the module raises as it is imported
        raise ConfigError(
            f"oauth_token_function {name} cannot be imported: {type(error).__name__}: {error}. Install the package of "
            "its module, or put the module's folder on PYTHONPATH",
            code=ErrorCode.SETTINGS_INVALID,
        ) from error
    if not callable(found):
        raise ConfigError(f"oauth_token_function {name} is not a function", code=ErrorCode.SETTINGS_INVALID)
    function: TokenFunction = found
    return function
