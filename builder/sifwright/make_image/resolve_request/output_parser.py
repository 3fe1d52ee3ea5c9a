"""Follow the engine's output: which layer is at work, and what was said when it failed.

Programs of a step print markers, lines that begin with `sifwright: `. Below render/templates:

    begin LAYER, end LAYER                    step.sh
    test LAYER                                run-tests.sh
    failed LAYER STATUS                       step.sh, run-tests.sh
    line STATUS LAYER FILE:NUMBER: COMMAND    trap.sh
    pin LAYER SOURCE REF DIGEST               bin/fetch-source
    archive LAYER SUITE TIME                  bin/apt-install, bin/rpm-upgrade

and, at the end of a step that ran with one uid and gid, system/one_uid/__main__.py:

    one id: PROGRAM wanted ID
"""

import re
import time
from collections import deque
from dataclasses import dataclass, field

from sifwright.errors import Problem, TestError
from sifwright.plan.site_policy import ELSEWHERE
from sifwright.plan.source_digest import ARCHIVE, SourceDigest
from sifwright.system.progress import Progress, Timer

_BEGIN = re.compile(r"sifwright: (begin|test) ([a-z0-9.-]+)")
_END = re.compile(r"sifwright: end ([a-z0-9.-]+)")
_LINE = re.compile(r"sifwright: line ([0-9]+) ([a-z0-9.-]+) (\S+:[0-9]+: .*)")
_FAILED = re.compile(r"sifwright: failed ([a-z0-9.-]+) ([0-9]+)")
_PIN = re.compile(
    r"sifwright: pin (?P<layer>\S+) (?P<source>\S+) (?P<ref>\S+)"
    r" (?P<digest>[0-9a-f]{40}|[0-9a-f]{64})"
)
_ARCHIVE = re.compile(
    r"sifwright: archive (?P<layer>\S+) (?P<ref>\S+)"
    r" (?P<digest>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ)"
)
_REFUSED = re.compile(r"sifwright: one id: (.+) wanted ([0-9]+)")
# Lines of pip, git and gcc say which step failed, or come in good builds, too.
_OTHER_ERRORS = "|".join(
    (
        *("subprocess-exited", "metadata-gen", "Failed to build", "Failed building"),
        *("Could not find a version", "No matching distribution", "pip's dependency resolver"),
        *("Ignored the following", "not a git repository", "No names found", "no tag exactly"),
        *("detected dubious ownership", "ld returned"),
    )
)
# Printed by compilers, linkers, configure, CMake, Meson and git.
_ERROR = re.compile(
    rf"(?:^|[\s:])(?:fatal )?(?i:error|fatal) *: (?!{_OTHER_ERRORS})|^CMake Error"
    r"|\bundefined reference to |\bcannot find -l"
)
# Printed by dpkg, when a script of the package fails.
_PACKAGE = re.compile(r"dpkg: error processing package (\S+) .*")
# Printed by Apptainer: a SIF that its control list forbids, which is no broken one
# (apptainer/apptainer@917d665, internal/pkg/runtime/engine/apptainer/prepare_linux.go).
_PROHIBITED = re.compile(r".*(?:prohibited by|image with) ECL\b.*")
_PROHIBITION = "the engine's execution control list (ecl.toml) forbids this SIF; it is not broken"
_ASK = "Ask your administrator which keys may sign, and build with --sign."
# Printed by Apptainer before it runs mksquashfs.
_PACKING = "Creating SIF file"
_KEPT_LINES = 12
_ELSEWHERE = f"Where that matters, leave it out, or build with subordinate ids: {ELSEWHERE}."


@dataclass(kw_only=True)
class OutputParser:
    """A callable that takes every line. `fix` is what to do when something fails.

    `own_seconds` are the seconds that each layer's install.sh ran, without starting it.
    """

    timer: Timer
    fix: str
    tail: deque[str] = field(default_factory=lambda: deque(maxlen=_KEPT_LINES))
    location: str = ""
    first_error: str = ""
    used: list[SourceDigest] = field(default_factory=list)
    own_seconds: dict[str, float] = field(default_factory=dict)
    _since: float = 0.0
    _status: str = ""
    _command: str = ""
    _refused: list[str] = field(default_factory=list)
    _packages: list[str] = field(default_factory=list)
    _is_prohibited: bool = False

    @property
    def progress(self) -> Progress:
        return self.timer.progress

    def __call__(self, line: str) -> None:
        self.progress.output(line)
        self._note(line)
        if match := _BEGIN.fullmatch(line):
            self._begin(*match.groups())
        elif match := _END.fullmatch(line):
            self.own_seconds[match[1]] = round(time.monotonic() - self._since, 3)
        elif match := _LINE.fullmatch(line):
            # A command may fail and be meant to: the last one before the end is the one.
            self._status, self._command = match[1], f", {match[3]}"
        elif match := _FAILED.fullmatch(line):
            command = self._command if self._status == match[2] else ""
            self.location = f"layer '{match[1]}'{command} (exit status {match[2]})"
        elif line.strip() and not line.startswith(("+ ", "sifwright: ")):
            # The trace of %post itself says nothing about the layer that failed.
            self.tail.append(line)
            if not self.first_error and _ERROR.search(line):
                self.first_error = line
        if _PACKING in line:
            self._begin("pack", "the SIF")

    def _note(self, line: str) -> None:
        """Note what a program of a step says that it used, or did not get."""
        if match := _PIN.fullmatch(line):
            self.used.append(SourceDigest(**match.groupdict()))
        elif match := _ARCHIVE.fullmatch(line):
            self.used.append(SourceDigest(source=ARCHIVE, **match.groupdict()))
        elif match := _REFUSED.fullmatch(line):
            self._refused.append(f"'{match[1]}' wanted id {match[2]}")
        elif match := _PACKAGE.fullmatch(line):
            self._packages.append(f"package '{match[1]}'")
        self._is_prohibited |= _PROHIBITED.fullmatch(line) is not None

    def _begin(self, word: str, rest: str) -> None:
        self.timer.start(rest if word == "begin" else f"{word} {rest}")
        self._since = time.monotonic()
        self.tail.clear()
        self.first_error = ""
        self._status = self._command = ""

    def problem(self, message: str) -> Problem:
        """Return what failed and where, with the first error and the last lines of the engine."""
        hidden = self.first_error not in ("", *self.tail)
        first = (f"first error: {self.first_error}", "…") if hidden else ()
        lines = "\n".join(f"    | {line}" for line in (*first, *self.tail))
        where = self.location or f"step '{self.timer.step}'"
        fix = f"{self._take_refused()} {self.fix}".lstrip()
        if self._is_prohibited:
            message, fix = _PROHIBITION, f"{_ASK} {self.fix}"
        return Problem(where=where, what=f"{message}\n{lines}" if lines else message, fix=fix)

    def refuse_failed_test(self, status: int, message: str) -> None:
        """Raise `TestError` unless the exit status of the tests is 0."""
        if status != 0:
            raise TestError(self.problem(message))

    def say_refused(self) -> None:
        """Say which ids programs of the last step wanted and did not get, if they did without."""
        if refused := self._take_refused():
            self.progress.note(f"layer '{self.timer.step}': {refused}")

    def _take_refused(self) -> str:
        refused = ", ".join(self._refused and [*self._packages, *self._refused])
        self._refused.clear()
        self._packages.clear()
        text = f"{refused}, which this build with one uid and gid does not have. {_ELSEWHERE}"
        return refused and text
