"""Arguments that several commands take, so that an option means the same everywhere."""

import argparse


def add_site(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("site", metavar="SITE", help="a site of 'sifwright list'")


def add_site_and_image(parser: argparse.ArgumentParser) -> None:
    add_site(parser)
    parser.add_argument(
        "image", metavar="IMAGE", nargs="?", default="", help="an image; default: the site's"
    )


def add_set(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        dest="settings",
        action="append",
        default=[],
        metavar="LAYER.OPTION=VALUE",
        help="give an option a value; may be repeated",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_output_folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output",
        default="build",
        metavar="DIR",
        help="folder of images: DIR/SITE/IMAGE (build)",
    )


def add_output_file(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--output", default="", metavar="FILE", help="file to write; default: standard output"
    )


def add_progress(parser: argparse.ArgumentParser) -> None:
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--quiet", action="store_true", help="print errors only")
    group.add_argument("--verbose", action="store_true", help="show the engine's output too")
    group.add_argument("--json", action="store_true", help="print one JSON object per event")


def add_build_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of commands that build an image."""
    add = parser.add_argument
    add("--force", action="store_true", help="build even if it is up to date")
    add(
        "--tests",
        choices=("all", "untested"),
        default="all",
        help="run the tests of all layers, or of layers that have not passed as they are now",
    )
    add("--no-cache", action="store_true", help="run every step, and keep none of the results")
    add(
        "--layout",
        choices=("layered", "flat"),
        help="a partition for each layer, or one for all; default: the site's",
    )


def add_installation(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that say which image a module starts, and where it is."""
    add_site_and_image(parser)
    add_set(parser)
    add_output_folder(parser)
    add = parser.add_argument
    add(
        "--from",
        dest="sif",
        default="",
        metavar="SIF",
        help="an image that sifwright has not built",
    )
    add(
        "--central",
        nargs="?",
        const="",
        metavar="PATH",
        help="install no image: it is in this folder of the site; default: the site's",
    )
    add(
        "--date",
        default="",
        metavar="YYYYMMDD",
        help="build date of an image that does not exist yet",
    )


def add_native_module(parser: argparse.ArgumentParser) -> None:
    """Add the arguments that name the module of an installation without a container."""
    add_site(parser)
    parser.add_argument(
        "--module", required=True, metavar="NAME/VERSION", help="the module, with its version"
    )
    add_output_file(parser)
