"""The command `verify`: say whether a SIF is what was published and signed."""

import json
from argparse import Namespace
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from sifwright.cli.options import arguments as shared
from sifwright.cli.options import locks, matrix
from sifwright.cli.options.context import progress_of, resolve_plan
from sifwright.cli.options.output import print_answer
from sifwright.errors import UsageError
from sifwright.images.sif.fingerprint import read_record
from sifwright.make_image.resolve_request.secrets import read_secrets
from sifwright.make_image.signing.trust import read_trust
from sifwright.make_image.signing.verify import signatures, verify_image
from sifwright.make_image.verify.published import Check, check_published
from sifwright.plan.plan_file import parse_plan, settings_of

HELP = "say whether a SIF is what was published and signed"
GROUP = "look"
ARGUMENTS = (
    shared.argument(
        "sif", metavar="SIF", help="an image, with its record.json beside it or signed"
    ),
    shared.switch("--rebuild", "build it from nothing, and name the first files that differ"),
    *locks.ARGUMENTS,
    shared.SECRET,
    *shared.TRUST,
    shared.JSON,
)


def run(arguments: Namespace) -> int:
    """Print each check; return 1 if one fails. Raises `UsageError` without a record."""
    if not arguments.rebuild and (arguments.locked is not None or arguments.bundle):
        where = "--locked or --bundle"
        raise UsageError.of("only a build reads a lock", where=where, fix="Add --rebuild.")
    checks = list(_checks(arguments))
    lines = (line for check in checks for line in _lines(check))
    print_answer(arguments, lambda: [asdict(check) for check in checks], lines)
    return int(not all(check.passed for check in checks))


def _lines(check: Check) -> list[str]:
    first, *others = check.lines
    head = f"{check.name + ':':<11}{'ok' if check.passed else 'NO'}, {first}"
    return [head, *(f"    {line}" for line in others)]


def _checks(arguments: Namespace) -> Iterator[Check]:
    """Yield what was checked; raise `SignatureError` for a signed image that was changed."""
    sif = Path(arguments.sif)
    names = (arguments.key, arguments.certificate, arguments.roots, arguments.intermediates)
    trust = read_trust(*names)
    if any(names) or (sif.is_file() and signatures(sif)):
        yield Check(name="signed", passed=True, lines=tuple(verify_image(sif, trust)))
    else:
        yield check_published(sif, read_record(sif))
    if arguments.rebuild:
        yield _rebuilt(arguments, sif, read_record(sif))


def _rebuilt(arguments: Namespace, sif: Path, record: Mapping[str, Any]) -> Check:
    """Build the image of a record again, from its lock if it has one, and compare the two."""
    from sifwright.make_image.build_image import build_image  # noqa: PLC0415  # takes 0.3 s to load
    from sifwright.make_image.verify import rebuild  # noqa: PLC0415  # the same
    from sifwright.report.diff.bytes_of_builds import differing_bytes  # noqa: PLC0415  # the same

    planned = parse_plan(json.dumps(record))
    folder = sif.resolve().parent
    arguments.site, arguments.image = planned.site, planned.image
    _, arguments.suffix = matrix.split_name(folder.name)
    arguments.settings, arguments.output = settings_of(planned), str(folder.parent.parent)
    arguments.quiet, arguments.verbose = arguments.json, False
    if "lock" in record and arguments.locked is None and not arguments.bundle:
        arguments.locked = ""
    plan, progress = resolve_plan(arguments), progress_of(arguments)
    rebuild.refuse_other_plan(plan, planned)
    lock = locks.lock_of(arguments, plan.site.name, plan.image.name)
    rebuild.refuse_other_lock(record, lock)
    secrets = read_secrets(arguments.secret)
    options = replace(rebuild.options_of(record), lock=lock, secrets=secrets)
    with (
        rebuild.rebuilding(plan, options, folder) as request,
        locks.with_files(request, arguments, progress) as again,
    ):
        build_image(again, progress)
        lines = differing_bytes(sif.resolve(), again.output.link.resolve())
    source = f" from the lock {lock.digest[:12]}" if lock else ""
    first = f"another build{source} gives {'other' if lines else 'the same'} bytes"
    return Check(name="rebuilt", passed=not lines, lines=(first, *lines))
