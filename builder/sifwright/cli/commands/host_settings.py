"""The command `host-settings`: what a build by hand takes from this machine."""

import shlex
from argparse import Namespace
from pathlib import Path

from sifwright.cli.options import arguments as shared
from sifwright.errors import UsageError
from sifwright.make_image.resolve_request import host_settings
from sifwright.system.terminal import print_line

HELP = "write this machine's settings for a build by hand"
GROUP = "build"
ARGUMENTS = (shared.argument("folder", metavar="DIR", help="a folder that is not there yet"),)


def run(arguments: Namespace) -> None:
    """Write the settings into a new folder, and print the commands that use them."""
    folder = Path(arguments.folder).absolute()
    try:
        folder.mkdir(parents=True, mode=0o700)
    except FileExistsError:
        fix = "Name a folder that is not there yet: it is to hold these settings alone."
        raise UsageError.of("is there already", where=arguments.folder, fix=fix) from None
    settings = host_settings.prepare(folder)
    binds = settings.definition_binds
    words = [f"{name}={shlex.quote(value)}" for name, value in settings.env.items()]
    words += ["apptainer build --fakeroot", *(f"--bind {shlex.quote(bind)}" for bind in binds)]
    print_line(f"build with it:  {' '.join(words)} image.sif IMAGE.def")
    # Nothing stays in the image of a bind below another one.
    volumes = (f"{binds[0]}:ro", *binds[1:])
    options = " ".join(f"-v {shlex.quote(volume)}" for volume in volumes)
    print_line(f"           or:  podman build {options} DIR")
    paths = f"SINGULARITY_BINDPATH={shlex.quote(','.join(volumes))}"
    print_line(f"     by proot:  {paths} singularity build image.sif IMAGE.def")
