"""The command `audit`: what of an image has known faults or is behind."""

import platform
from argparse import Namespace
from dataclasses import asdict, replace
from pathlib import Path

from rich.console import Console

from sifwright.catalog.model import Catalog
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import context, matrix
from sifwright.cli.options.output import print_lines, table
from sifwright.errors import MachineError
from sifwright.images.contents.inventory import Inventory, inventory
from sifwright.images.sif.fingerprint import known_record
from sifwright.images.sources.inspect_image import contents_of, refused
from sifwright.images.sources.parse_name import is_file_or_scheme
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.report.audit import data, lock_contents
from sifwright.report.audit.audit import Auditor
from sifwright.report.audit.findings import Audit
from sifwright.system.progress import QuietProgress, TextProgress
from sifwright.system.terminal import escape_name, print_json, print_table

HELP = "say what of an image has known faults or is behind its updates"
GROUP = "look"
ARGUMENTS = (
    shared.argument(
        "target",
        metavar="SITE|IMAGE",
        help="a site of 'sifwright list', an image as 'inspect' takes it, a lock or a bundle",
    ),
    shared.argument("image", metavar="IMAGE", nargs="?", default="", help="an image of the site"),
    shared.OUTPUT_FOLDER,
    shared.text("--osv", "FILE|URL", "a dump of OSV's vulnerabilities: all.zip"),
    shared.text("--data", "DIR|TAR", "read all data from there; ask no server"),
    shared.text(
        "--save",
        "DIR",
        "write the data that was read into a new folder, for --data and 'bundle --audit'",
    ),
    shared.text("--processor", "NAME", "as aarch64; default: this machine's"),
    shared.one_of(
        shared.switch("--json", "print JSON"), shared.switch("--sarif", "print SARIF 2.1.0")
    ),
)


def run(arguments: Namespace) -> int:
    """Print the findings; return 1 if there are any."""
    name, catalog = _target(arguments)
    lock = lock_contents.read_lock(name)
    contents = lock_contents.inventory_of(lock) if lock else _contents(name, arguments)
    record = lock_contents.record_of(lock) if lock else known_record(Path(name))[1]
    folder = arguments.data or (name if data.is_bundle(name) else "")
    with data.opened(folder, arguments.osv) as source, data.saved(arguments.save, source):
        auditor = Auditor(contents=contents, data=source, record=record, catalog=catalog)
        result = _audited(auditor, name)
    if arguments.json or arguments.sarif:
        print_json(result.sarif() if arguments.sarif else asdict(result))
    else:
        _print(result)
    return int(bool(result.findings))


def _audited(auditor: Auditor, name: str) -> Audit:
    try:
        return auditor.audit(name)
    except MachineError as error:
        more = "Without a network, take the data that another machine has saved: --data DIR."
        problems = (replace(item, fix=f"{item.fix}\n    {more}".strip()) for item in error.problems)
        raise MachineError(*problems) from None


def _target(arguments: Namespace) -> tuple[str, Catalog | None]:
    """Return the image, and the catalog of the project where a site was named."""
    if not arguments.image and is_file_or_scheme(arguments.target):
        return arguments.target, None
    arguments.site, arguments.settings = arguments.target, []
    matrix.read_name(arguments)
    plan = context.resolve_plan(arguments)
    output: ImageFolder = context.built(arguments, plan)
    return str(output.link), context.load(arguments)


def _contents(name: str, arguments: Namespace) -> Inventory:
    quiet = arguments.json or arguments.sarif
    progress = QuietProgress() if quiet else TextProgress(lambda: Console(stderr=True))
    processor = arguments.processor or platform.machine()
    tree = contents_of(name, processor=processor, progress=progress).tree
    with refused(name):
        return inventory(tree)


def _print(result: Audit) -> None:
    heads = ("finding", "package", "version", "fixed in", "advisory", "why")
    rows = (
        (item.rule, item.package, item.version, item.fixed, item.identity, item.message)
        for item in result.findings
    )
    if result.findings:
        print_table(table(heads, (map(escape_name, row) for row in rows), wrapped=("why",)))
    lines = [
        f"{len(result.findings)} findings in {result.image}",
        *(f"compared: {line}" for line in result.compared),
        *(f"not compared: {line}" for line in result.unchecked),
    ]
    print_lines(map(escape_name, lines))
