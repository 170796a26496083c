"""How this program is called from a terminal of this machine: what hints that name a command begin with."""

import os
import shlex
import shutil
import sys
from pathlib import Path

NAME = "lagwise"


def program() -> str:
    """``lagwise`` where the shell finds this very program by its name, or else the path of it, quoted for a shell.

    A fresh checkout has it in its virtual environment, which is not on the ``PATH``. The path is absolute: hints are
    followed in other terminals, too.
    """
    script = _script(Path(sys.argv[0]))
    if script is None or _is_same(shutil.which(NAME), script):
        return NAME
    return shlex.quote(os.path.abspath(script))


def _script(started: Path) -> Path | None:
    """The script that starts this program, from what was started; None where there is none, as in somebody's tests."""
    if started.name == NAME:
        return started
    if (started.parent.name, started.name) != (NAME, "__main__.py"):
        return None
    script = Path(sys.executable).with_name(NAME)  # where it is started as a module, as `lagwise up` does
    return script if script.exists() else None


def _is_same(found: str | None, script: Path) -> bool:
    return found is not None and script.exists() and Path(found).samefile(script)
