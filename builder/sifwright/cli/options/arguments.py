"""Arguments that several commands take, so that an option means the same everywhere."""

import argparse


def add_text(
    parser: argparse.ArgumentParser, name: str, metavar: str, text: str, dest: str | None = None
) -> None:
    """Add an option with a text, which is empty unless it is given."""
    parser.add_argument(name, default="", metavar=metavar, help=text, dest=dest)


def add_switch(parser: argparse.ArgumentParser, name: str, text: str) -> None:
    parser.add_argument(name, action="store_true", help=text)


def add_list(
    parser: argparse.ArgumentParser, name: str, metavar: str, text: str, dest: str | None = None
) -> None:
    """Add an option that may be given several times."""
    parser.add_argument(name, action="append", default=[], metavar=metavar, help=text, dest=dest)


def add_site(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    """Add the site's name; where it may be left out, it is empty."""
    parser.add_argument(
        "site",
        metavar="SITE",
        nargs=None if is_required else "?",
        default="",
        help="a site of 'sifwright list'",
    )


def add_site_and_image(parser: argparse.ArgumentParser, *, is_required: bool = True) -> None:
    add_site(parser, is_required=is_required)
    parser.add_argument(
        "image", metavar="IMAGE", nargs="?", default="", help="an image; default: the site's"
    )


def add_set(parser: argparse.ArgumentParser) -> None:
    add_list(
        parser,
        "--set",
        "LAYER.OPTION=VALUE",
        "give an option a value; may be repeated",
        dest="settings",
    )


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a plan."""
    add_site_and_image(parser)
    add_set(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    add_switch(parser, "--json", "print JSON")


def add_output_folder(parser: argparse.ArgumentParser, use: str = "") -> None:
    parser.add_argument(
        "--output",
        default="build",
        metavar="DIR",
        help=f"folder of images: {use or 'DIR/SITE/IMAGE'} (build)",
    )


def add_output_file(parser: argparse.ArgumentParser) -> None:
    add_text(parser, "--output", "FILE", "file to write; default: standard output")


def add_directive(parser: argparse.ArgumentParser, text: str) -> None:
    add_list(parser, "--directive", "NAME[=VALUE]", f"{text}; may be repeated", dest="directives")


def add_progress(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quiet", action="store_true", help="print errors only")
    group.add_argument("--verbose", action="store_true", help="show the engine's output too")
    group.add_argument("--json", action="store_true", help="print one JSON object per event")


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that build an image."""
    add_output_folder(parser)
    add_progress(parser)
    add_switch(parser, "--force", "build even if it is up to date")
    parser.add_argument(
        "--tests",
        choices=("all", "untested"),
        default="all",
        help="run the tests of all layers, or of layers that have not passed as they are now",
    )
    add_switch(parser, "--no-cache", "run every step, and keep none of the results")
    add_switch(
        parser,
        "--emulate-compilers",
        "compile layers even if the site's processor is emulated, which takes hours",
    )
    parser.add_argument(
        "--layout",
        choices=("layered", "flat"),
        help="layered: a partition for each layer; flat: one for all; default: the site's",
    )


def add_installation(parser: argparse.ArgumentParser, writes: str = "") -> None:
    """Add the arguments that say which image a module starts, where it is, and what is written."""
    add_plan(parser)
    add_output_folder(parser, f"reads DIR/SITE/IMAGE/image.sif{writes}")
    add_text(
        parser,
        "--from",
        "SIF",
        "a SIF that sifwright did not build, in place of IMAGE, --set and --date",
        dest="sif",
    )
    parser.add_argument(
        "--central",
        nargs="?",
        const="",
        metavar="PATH",
        help="install no image: take it from this folder; default: the site's central folder",
    )
    add_text(parser, "--date", "YYYYMMDD", "build date of an image that does not exist yet")


def add_native_module(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the module of an installation without a container."""
    add_site(parser)
    parser.add_argument(
        "--module", required=True, metavar="NAME/VERSION", help="the module, with its version"
    )
    add_output_file(parser)


def add_secret(parser: argparse.ArgumentParser) -> None:
    """Add the option --secret of the commands that run steps."""
    add_list(
        parser,
        "--secret",
        "id=NAME[,src=FILE|env=VAR]",
        "a file for the steps of layers that name it, in no image and no log",
    )


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a public key; without one, Apptainer's own keyring counts."""
    add_text(parser, "--key", "FILE", "public key in PEM; default: Apptainer's keyring")
    add_text(parser, "--certificate", "FILE", "X.509 certificate of the signer")
    add_text(
        parser, "--certificate-roots", "FILE", "certificates of the issuers to trust", dest="roots"
    )
    add_text(
        parser,
        "--certificate-intermediates",
        "FILE",
        "certificates between signer and issuer",
        dest="intermediates",
    )


def add_no_https(parser: argparse.ArgumentParser) -> None:
    add_switch(parser, "--no-https", "the registry has no TLS")
