"""Check what a build needs before it starts, and say how to mend each thing at once."""

from __future__ import annotations

import getpass
import os
import re
import shutil
import ssl
import sys
import tempfile
import urllib.error
import urllib.request
from pathlib import Path
from typing import TYPE_CHECKING

from sifwright import runner
from sifwright.engines import apptainer
from sifwright.errors import MachineError, Problem
from sifwright.machine import ca_bundle

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from sifwright.engines.apptainer import Apptainer
    from sifwright.model import Download, Plan, Step

__all__ = ["check", "engine", "search_path", "temporary_root"]

_NETWORK_SECONDS = 20.0
# Sub-ids have no meaning to these file systems' servers, so --fakeroot cannot write there
# (Apptainer user guide, "Fakeroot feature"; docs.isambard.ac.uk and OLCF say so for Lustre).
_SHARED = {"nfs", "nfs4", "lustre", "gpfs", "beegfs", "panfs", "ceph"}
_INSTALL = "sudo tools/install-apptainer, or ask your administrator"


def check(plan: Plan, machine: Mapping[str, str], output: Path) -> Apptainer:
    """Return the engine, or raise `MachineError` with everything that is missing."""
    found = apptainer.find()
    problems = [
        *_engine_problems(found),
        *_program_problems(plan),
        *_user_problems(),
        *_disk_problems(plan, output),
    ]
    # Without the basics, a slow answer about the network would only hide them.
    problems = problems or list(_network_problems(plan, machine))
    if found is None or problems:
        raise MachineError(*problems)
    return found


def engine() -> Apptainer:
    """The engine alone, for running an image that is there; raises `MachineError`."""
    found = apptainer.find()
    if found is None:
        raise MachineError(*_engine_problems(found))
    return found


def temporary_root() -> Path:
    """Where Apptainer unpacks: its own variable, then the system's rule."""
    return Path(os.environ.get("APPTAINER_TMPDIR") or tempfile.gettempdir())


def _engine_problems(engine: Apptainer | None) -> Iterator[Problem]:
    if engine is None:
        yield Problem(what="neither 'apptainer' nor 'singularity' is on PATH", fix=_INSTALL)
    elif engine.version < apptainer.MINIMUM:
        yield Problem(
            where=engine.program,
            what=f"version {engine.version} is older than {apptainer.MINIMUM}",
            fix=_INSTALL,
        )


def _program_problems(plan: Plan) -> Iterator[Problem]:
    wanted = {"mksquashfs": "Apptainer"}
    for step in plan.steps:
        wanted |= dict.fromkeys(step.layer.programs, f"layer '{step.layer.name}'")
    for program, user in wanted.items():
        # Administrators' programs are often not on an ordinary user's PATH.
        if shutil.which(program, path=search_path()) is None:
            yield Problem(what=f"'{program}' is missing; {user} needs it", fix=_INSTALL)


def search_path() -> str:
    return f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"


def _user_problems() -> Iterator[Problem]:
    """What a user namespace needs (user_namespaces(7), newuidmap(1))."""
    if not apptainer.needs_fakeroot():
        return
    user = getpass.getuser() if os.geteuid() else "root"
    for file in ("/etc/subuid", "/etc/subgid"):
        if not _has_range(Path(file), user):
            yield Problem(
                where=file,
                what=f"user '{user}' has no subordinate ids there",
                fix=f"sudo usermod --add-subuids 200000-265535 --add-subgids 200000-265535 {user}",
            )
    if shutil.which("newuidmap", path=search_path()) is None:
        yield Problem(what="'newuidmap' is missing; user namespaces need it", fix=_INSTALL)
    fuse = Path("/dev/fuse")
    if os.geteuid() and not os.access(fuse, os.R_OK | os.W_OK):
        what = "cannot be opened" if fuse.exists() else "does not exist"
        yield Problem(where=str(fuse), what=what, fix="sudo chmod 666 /dev/fuse, or modprobe fuse")
    limit = Path("/proc/sys/user/max_user_namespaces")
    if limit.exists() and limit.read_text().strip() == "0":
        fix = "sudo sysctl user.max_user_namespaces=15000"
        yield Problem(where=str(limit), what="user namespaces are switched off", fix=fix)


def _has_range(file: Path, user: str) -> bool:
    try:
        text = file.read_text()
    except OSError:
        return False
    return (
        re.search(rf"^({re.escape(user)}|{os.geteuid()}):\d+:\d+$", text, re.MULTILINE) is not None
    )


def _disk_problems(plan: Plan, output: Path) -> Iterator[Problem]:
    """The unpacked tree goes to the temporary folder, the SIF (about half of it) to the output."""
    unpacked = sum(step.layer.disk_mb for step in plan.steps)
    for folder, needed, variable in (
        (temporary_root(), unpacked, "APPTAINER_TMPDIR"),
        (output, unpacked // 2, "--output"),
    ):
        free = shutil.disk_usage(_existing(folder)).free // 1_000_000
        if free < needed:
            yield Problem(
                where=str(folder),
                what=f"{needed} MB are needed, {free} MB are free",
                fix=f"Free some, or name another folder with {variable}.",
            )
    kind = _file_system(temporary_root())
    if kind in _SHARED and apptainer.needs_fakeroot():
        yield Problem(
            where=str(temporary_root()),
            what=f"it is on {kind}, which does not know subordinate ids",
            fix="Set APPTAINER_TMPDIR to a folder on a local disk.",
        )


def _existing(folder: Path) -> Path:
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _file_system(folder: Path) -> str:
    """The type of the file system a folder is on, from the longest mount point above it."""
    best = ("", "")
    resolved = str(_existing(folder).resolve())
    for line in Path("/proc/self/mounts").read_text().splitlines():
        _, place, kind, *_ = line.split()
        inside = resolved == place or resolved.startswith(place.rstrip("/") + "/")
        if inside and len(place) >= len(best[0]):
            best = (place, kind)
    return best[1]


def _network_problems(plan: Plan, machine: Mapping[str, str]) -> Iterator[Problem]:
    wanted = [(step, download) for step in plan.steps for download in step.layer.downloads]
    for step, download in wanted:
        if download.url:
            yield from _url_problems(step, download, machine)
    packages = [(step, item) for step, item in wanted if item.pip and _requirement(step, item)]
    if not packages or _pip_finds([_requirement(*one) for one in packages], "", plan):
        return
    for step, download in packages:
        yield from _pip_problems(step, download, plan)


def _fill(text: str, step: Step) -> str:
    return re.sub(r"\{([a-z0-9-]+)\}", lambda match: step.options[match.group(1)].text, text)


def _requirement(step: Step, download: Download) -> str:
    """The requirement with its version; nothing if the option that holds it is empty."""
    text = _fill(download.pip, step)
    return "" if text.endswith("==") else text


def _url_problems(step: Step, download: Download, machine: Mapping[str, str]) -> Iterator[Problem]:
    base = step.options[download.option].text or machine.get(download.machine, "")
    address = f"{base.rstrip('/')}/{_fill(download.url, step)}"
    context = ssl.create_default_context(cafile=ca_bundle() or None)
    try:
        urllib.request.urlopen(address, timeout=_NETWORK_SECONDS, context=context).close()  # noqa: S310  # the schema of the option allows http and https only
    except (OSError, ValueError) as error:
        yield Problem(
            where=f"{step.layer.name}.{download.option}",
            what=f"{download.what} cannot be reached at {address}: {error}",
            fix=f"Check the network and proxies, or --set {step.layer.name}.{download.option}=…",
        )


def _pip_problems(step: Step, download: Download, plan: Plan) -> Iterator[Problem]:
    requirement, index = _requirement(step, download), _fill(download.index, step)
    if _pip_finds([requirement], "", plan) or (index and _pip_finds([requirement], index, plan)):
        return
    asked = "this machine's pip settings" + (f" and {index}" if index else "")
    yield Problem(
        where=f"layer '{step.layer.name}'",
        what=f"pip finds no wheel of {requirement} for Python {plan.facts.get('python', '')}"
        f" (asked: {asked})",
        fix="Check the version and the network, or point pip at a mirror (PIP_INDEX_URL,"
        " PIP_FIND_LINKS or pip.conf).",
    )


def _pip_finds(requirements: list[str], index: str, plan: Plan) -> bool:
    """Ask pip itself, for the image's Python, without downloading what it finds."""
    command = [
        *(sys.executable, "-m", "pip", "install", "--dry-run", "--no-deps", "--quiet"),
        *("--ignore-installed", "--only-binary=:all:", "--retries=1", "--no-input"),
        *("--target", "unused", "--python-version", plan.facts.get("python", "3")),
        *(["--index-url", index] if index else []),
        *requirements,
    ]
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    return runner.capture(command, env=env, timeout=120).returncode == 0
