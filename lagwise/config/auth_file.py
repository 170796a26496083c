"""Checks the file behind ``dashboard.sign_in``: users can only sign in if it is complete."""

import tomllib
from pathlib import Path

from lagwise.platform.error_codes import ErrorCode
from lagwise.platform.errors import ConfigError
from lagwise.platform.secrets import remember

_WHERE = "dashboard.sign_in.auth_file"
_OF_THE_PAGE = ("redirect_uri", "cookie_secret")
_OF_THE_PROVIDER = ("client_id", "client_secret", "server_metadata_url")
#: The shortest cookie secret: whoever guesses it can sign in as anybody.
_COOKIE_SECRET_CHARACTERS = 32


def check_auth_file(auth_file: Path) -> None:
    """Raise ConfigError, saying what to do, if users could not sign in with this file.

    Streamlit reads the same file and would serve pages even without a usable ``[auth]`` in it. The provider is not
    contacted.
    """
    path = auth_file.expanduser().resolve()
    try:
        tree = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{_WHERE}: there is no file {path}", code=ErrorCode.SIGN_IN_INCOMPLETE) from None
    except OSError as error:
        raise ConfigError(
            f"{_WHERE}: cannot read {path}: {error.strerror}", code=ErrorCode.SIGN_IN_INCOMPLETE
        ) from error
    except UnicodeDecodeError as error:
        raise ConfigError(
            f"{_WHERE}: {path} is not UTF-8 text (byte {error.start})", code=ErrorCode.SIGN_IN_INCOMPLETE
        ) from error
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{_WHERE}: {path} is not TOML: {error}", code=ErrorCode.SIGN_IN_INCOMPLETE) from None
    auth = tree.get("auth")
    if not isinstance(auth, dict):
        raise ConfigError(f"{_WHERE}: {path} has no section [auth]", code=ErrorCode.SIGN_IN_INCOMPLETE)
    provider = auth.get("default", auth)  # a section [auth.default] is the provider's, where there is one
    if not isinstance(provider, dict):
        raise ConfigError(f"{_WHERE}: [auth.default] in {path} must be a section", code=ErrorCode.SIGN_IN_INCOMPLETE)
    missing = [key for key in _OF_THE_PAGE if not _is_text(auth.get(key))]
    missing += [key for key in _OF_THE_PROVIDER if not _is_text(provider.get(key))]
    if missing:
        raise ConfigError(
            f"{_WHERE}: [auth] in {path} needs {', '.join(missing)}, each a non-empty text",
            code=ErrorCode.SIGN_IN_INCOMPLETE,
        )
    if len(auth["cookie_secret"]) < _COOKIE_SECRET_CHARACTERS:
        raise ConfigError(
            f"{_WHERE}: cookie_secret in {path} is too easy to guess: give it at least "
            f"{_COOKIE_SECRET_CHARACTERS} random characters",
            code=ErrorCode.SIGN_IN_INCOMPLETE,
        )
    remember(auth["cookie_secret"], provider["client_secret"])


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())
