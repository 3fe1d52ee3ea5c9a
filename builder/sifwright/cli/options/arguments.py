"""Arguments that several commands take, so that an option means the same everywhere."""

from collections.abc import Callable
from operator import methodcaller
from typing import Any

# Adds one argument, or the group of some, to a parser.
Argument = Callable[[Any], object]


def argument(*names: str, **settings: Any) -> Argument:  # noqa: ANN401  # as argparse takes them
    return methodcaller("add_argument", *names, **settings)


def text(name: str, metavar: str, about: str, dest: str | None = None) -> Argument:
    """Return an option with a text, which is empty unless it is given."""
    return argument(name, default="", metavar=metavar, help=about, dest=dest)


def switch(name: str, about: str) -> Argument:
    return argument(name, action="store_true", help=about)


def repeated(name: str, metavar: str, about: str, dest: str | None = None) -> Argument:
    """Return an option that may be given several times."""
    return argument(name, action="append", default=[], metavar=metavar, help=about, dest=dest)


def directive(about: str) -> Argument:
    return repeated("--directive", "NAME[=VALUE]", f"{about}; may be repeated", dest="directives")


def defaults(**values: object) -> Argument:
    """Return values of arguments that the command does not take."""
    return methodcaller("set_defaults", **values)


def one_of(*members: Argument, required: bool = False) -> Argument:
    """Return options of which at most one may be given."""

    def add(parser: Any) -> None:  # noqa: ANN401  # a parser, or a group of one
        group = parser.add_mutually_exclusive_group(required=required)
        for member in members:
            member(group)

    return add


def output_folder(use: str = "DIR/SITE/IMAGE") -> Argument:
    about = f"folder of images: {use} (build)"
    return argument("--output", default="build", metavar="DIR", help=about)


_ABOUT_SITE = "a site of 'sifwright list'"
SITE = argument("site", metavar="SITE", default="", help=_ABOUT_SITE)
OPTIONAL_SITE = argument("site", metavar="SITE", nargs="?", default="", help=_ABOUT_SITE)
IMAGE = argument(
    "image", metavar="IMAGE", nargs="?", default="", help="an image; default: the site's"
)
SET = repeated(
    "--set", "LAYER.OPTION=VALUE", "give an option a value; may be repeated", dest="settings"
)
# The arguments that name a plan.
PLAN = (SITE, IMAGE, SET)
JSON = switch("--json", "print JSON")
OUTPUT_FOLDER = output_folder()
OUTPUT_FILE = text("--output", "FILE", "file to write; default: standard output")
PROGRESS = one_of(
    switch("--quiet", "print errors only"),
    switch("--verbose", "show the engine's output too"),
    switch("--json", "print one JSON object per event"),
)
# The options of commands that build an image.
BUILD_OPTIONS = (
    OUTPUT_FOLDER,
    PROGRESS,
    switch("--force", "build even if it is up to date"),
    argument(
        "--tests",
        choices=("all", "untested"),
        default="all",
        help="run the tests of all layers, or of layers that have not passed as they are now",
    ),
    switch("--no-cache", "run every step, and keep none of the results"),
    switch(
        "--emulate-compilers",
        "compile layers even if the site's processor is emulated, which takes hours",
    ),
    argument(
        "--layout",
        choices=("layered", "flat"),
        help="layered: a partition for each layer; flat: one for all; default: the site's",
    ),
)
# The arguments that name the module of an installation without a container.
NATIVE_MODULE = (
    SITE,
    argument(
        "--module", required=True, metavar="NAME/VERSION", help="the module, with its version"
    ),
    OUTPUT_FILE,
)
# The option of the commands that run steps.
SECRET = repeated(
    "--secret",
    "id=NAME[,src=FILE|env=VAR]",
    "a file for the steps of layers that name it, in no image and no log",
)
# The options that name a public key; without one, Apptainer's own keyring counts.
TRUST = (
    text("--key", "FILE", "public key in PEM; default: Apptainer's keyring"),
    text("--certificate", "FILE", "X.509 certificate of the signer"),
    text("--certificate-roots", "FILE", "certificates of the issuers to trust", dest="roots"),
    text(
        "--certificate-intermediates",
        "FILE",
        "certificates between signer and issuer",
        dest="intermediates",
    ),
)
NO_HTTPS = switch("--no-https", "the registry has no TLS")


def installation(writes: str = "") -> tuple[Argument, ...]:
    """Return the arguments that say which image a module starts, where it is, what is written."""
    return (
        *PLAN,
        output_folder(f"reads DIR/SITE/IMAGE/image.sif{writes}"),
        text(
            "--from",
            "SIF",
            "a SIF that sifwright did not build, in place of IMAGE, --set and --date",
            dest="sif",
        ),
        argument(
            "--central",
            nargs="?",
            const="",
            metavar="PATH",
            help="install no image: take it from this folder; default: the site's central folder",
        ),
        text("--date", "YYYYMMDD", "build date of an image that does not exist yet"),
    )
