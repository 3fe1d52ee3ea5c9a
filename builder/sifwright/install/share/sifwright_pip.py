"""Say what to do where pip cannot change the packages; imported when Python starts as pip.

Without isolation, pip refuses the constraint of isolated builds, which the image sets.
"""

import os
import re
import sys

CHANGES = ("install", "uninstall")
ELSEWHERE = ("-t", "--target", "--prefix", "--root", "--dry-run", "-h", "--help")
SQUASHED = "user-software is one squashfs file: run unmake-squashfs first"
READ_ONLY = (
    "user-software is read-only here: set SIFWRIGHT_USER_SOFTWARE to a folder of yours,"
    " unload the module, load it again, and use pytorch-pip"
)


def words_of_pip(words: "list[str]") -> "list[str]":
    """Return pip's arguments if this process is pip: `python -m pip …` or `python …/bin/pip …`."""
    for before, word, after in zip(words, words[1:4], range(2, 5)):
        is_module = word == "pip" and re.match(r"-[A-Za-z]*m$", before)
        if is_module or re.search(r"/pip[0-9.]*$", word):
            return words[after:]
    return []


def refusal(words: "list[str]") -> str:
    """Return the reason why pip cannot do this, or ''."""
    command = next((word for word in words if not word.startswith("-")), "")
    if command not in CHANGES or any(word.split("=")[0] in ELSEWHERE for word in words):
        return ""
    if os.access(sys.prefix, os.W_OK):
        return ""
    return READ_ONLY if os.path.islink("/user-software/venv") else SQUASHED


def main() -> None:
    words = getattr(sys, "orig_argv", None)
    if words is None:  # before Python 3.10
        with open("/proc/self/cmdline", encoding="utf-8", errors="replace") as file:
            words = file.read().split("\0")[:-1]
    words = words_of_pip(words)
    if "--no-build-isolation" in words:
        os.environ.pop("PIP_BUILD_CONSTRAINT", None)
    reason = refusal(words)
    if reason:
        sys.stderr.write("pip: {}\n".format(reason))
        sys.stderr.flush()
        os._exit(1)  # an exception would be shown with its traceback here


main()
