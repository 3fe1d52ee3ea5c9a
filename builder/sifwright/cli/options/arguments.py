"""Arguments that several commands take, so that an option means the same everywhere."""

import argparse


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
    text = "an image; default: the site's"
    parser.add_argument("image", metavar="IMAGE", nargs="?", default="", help=text)


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="LAYER.OPTION=VALUE",
        help="give an option a value; may be repeated",
    )


def add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name a plan."""
    add_site_and_image(parser)
    add_set(parser)


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_output_folder(parser: argparse.ArgumentParser, use: str = "") -> None:
    text = f"folder of images: {use or 'DIR/SITE/IMAGE'} (build)"
    parser.add_argument("--output", default="build", metavar="DIR", help=text)


def add_output_file(parser: argparse.ArgumentParser) -> None:
    text = "file to write; default: standard output"
    parser.add_argument("--output", default="", metavar="FILE", help=text)


def add_directive(parser: argparse.ArgumentParser, text: str) -> None:
    parser.add_argument(
        "--directive",
        dest="directives",
        action="append",
        default=[],
        metavar="NAME[=VALUE]",
        help=f"{text}; may be repeated",
    )


def add_progress(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quiet", action="store_true", help="print errors only")
    group.add_argument("--verbose", action="store_true", help="show the engine's output too")
    group.add_argument("--json", action="store_true", help="print one JSON object per event")


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that build an image."""
    add_output_folder(parser)
    add_progress(parser)
    add = parser.add_argument
    add("--force", action="store_true", help="build even if it is up to date")
    text = "run the tests of all layers, or of layers that have not passed as they are now"
    add("--tests", choices=("all", "untested"), default="all", help=text)
    add("--no-cache", action="store_true", help="run every step, and keep none of the results")
    text = "compile layers even if the site's processor is emulated, which takes hours"
    add("--emulate-compilers", action="store_true", help=text)
    text = "layered: a partition for each layer; flat: one for all; default: the site's"
    add("--layout", choices=("layered", "flat"), help=text)


def add_installation(parser: argparse.ArgumentParser, writes: str = "") -> None:
    """Add the arguments that say which image a module starts, where it is, and what is written."""
    add_plan(parser)
    add_output_folder(parser, f"reads DIR/SITE/IMAGE/image.sif{writes}")
    add = parser.add_argument
    text = "a SIF that sifwright did not build, in place of IMAGE, --set and --date"
    add("--from", dest="sif", default="", metavar="SIF", help=text)
    text = "install no image: take it from this folder; default: the site's central folder"
    add("--central", nargs="?", const="", metavar="PATH", help=text)
    text = "build date of an image that does not exist yet"
    add("--date", default="", metavar="YYYYMMDD", help=text)


def add_native_module(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the module of an installation without a container."""
    add_site(parser)
    text = "the module, with its version"
    parser.add_argument("--module", required=True, metavar="NAME/VERSION", help=text)
    add_output_file(parser)


def add_secret(parser: argparse.ArgumentParser) -> None:
    """Add the option --secret of the commands that run steps."""
    text = "a file for the steps of layers that name it, in no image and no log"
    parser.add_argument(
        "--secret", action="append", default=[], metavar="id=NAME[,src=FILE|env=VAR]", help=text
    )


def add_trust(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a public key; without one, Apptainer's own keyring counts."""
    add = parser.add_argument
    add("--key", default="", metavar="FILE", help="public key in PEM; default: Apptainer's keyring")
    add("--certificate", default="", metavar="FILE", help="X.509 certificate of the signer")
    add(
        "--certificate-roots",
        dest="roots",
        default="",
        metavar="FILE",
        help="certificates of the issuers to trust",
    )
    text = "certificates between signer and issuer"
    add("--certificate-intermediates", dest="intermediates", default="", metavar="FILE", help=text)


def add_no_https(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--no-https", action="store_true", help="the registry has no TLS")
