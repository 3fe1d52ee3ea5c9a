"""Checks of the engine: whether there is one, its age, its known security holes."""

from collections.abc import Iterator

from sifwright.errors import Problem
from sifwright.host.engines import apptainer
from sifwright.host.engines.apptainer import Apptainer
from sifwright.make_image.check_machine import host_checks


def problems(engine: Apptainer | None) -> Iterator[Problem]:
    if engine is None:
        message = "neither 'apptainer' nor 'singularity' is on PATH"
        yield Problem(what=message, fix=host_checks.INSTALL)
    elif engine.is_too_old:
        minimum = " or ".join(f"{name} {version}" for name, version in apptainer.MINIMUM.items())
        yield Problem(
            where=engine.program,
            what=f"{engine.product} {engine.version} is too old; {minimum} can build",
            fix=host_checks.INSTALL,
        )
    else:
        yield from _holes(engine)
        if apptainer.has_control_list(engine):
            yield Problem(
                where=engine.program,
                what="its execution control list (ecl.toml) is active, and may refuse new SIFs",
                fix="Ask your administrator which keys may sign, and build with --sign.",
                severity="note",
            )


def _holes(engine: Apptainer) -> Iterator[Problem]:
    for closed, hole in apptainer.HOLES[engine.product]:
        if engine.version < closed and apptainer.is_setuid(engine):
            yield Problem(
                where=engine.program,
                what=f"{engine.product} {engine.version} has {hole}",
                fix=f"Ask your administrator for {closed}.",
                severity="note",
            )
