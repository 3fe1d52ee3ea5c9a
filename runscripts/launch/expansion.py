"""Variables of the environment in the arguments of a script: `--expand-variables`.

Also a program, which torchrun starts for each rank: `python expansion.py ARGUMENT...` becomes
`python -u ARGUMENT...` with the arguments expanded. Only then does a rank have its variables.
"""

import os
import re
import sys

EX_CONFIG = 78  # errors.py cannot be loaded where this file is the program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict, List

VARIABLE = re.compile(r"\$(?:(\$)|([A-Za-z_][A-Za-z0-9_]*)|\{([A-Za-z_][A-Za-z0-9_]*)\})")


def expand(arguments: "List[str]", env: "Dict[str, str]") -> "List[str]":
    """Replace `$NAME`, `${NAME}` and `$$`; every other `$` stays, and values are not split.

    Raises `ValueError` for a variable that is not set.
    """

    def value(match: "re.Match[str]") -> str:
        name = match.group(2) or match.group(3)
        if match.group(1) or name in env:
            return match.group(1) or env[name]
        message = (
            "{} is not set, which the argument '{}' names: set it, write $$ for a plain $, or"
            " leave --expand-variables away"
        )
        raise ValueError(message.format(name, match.string[:200]))

    return [VARIABLE.sub(value, argument) for argument in arguments]


def guard_again() -> None:
    """Have the next Python import the check of MPI's size, too: in this one it stepped aside."""
    if any(type(finder).__module__ == "sitecustomize" for finder in sys.meta_path):
        guard = os.path.join(os.path.dirname(os.path.abspath(__file__)), "guard")
        path = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = guard + ":" + path if path else guard


def main() -> None:
    """Become Python with the expanded arguments."""
    try:
        words = expand(sys.argv[1:], dict(os.environ))
    except ValueError as error:
        sys.stderr.write("conda-python-distributed: {}\n".format(error))
        sys.exit(EX_CONFIG)
    guard_again()
    # -u: as torchrun starts Python.
    os.execv(sys.executable, [sys.executable, "-u", *words])  # noqa: S606  # a shell would not exec


if __name__ == "__main__":
    main()
