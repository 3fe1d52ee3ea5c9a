"""The command `install`: an image's layers as an installation on the host."""

from argparse import Namespace
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from sifwright.cli.commands.native_module import module_name, native_site
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import submission, submit_jobs
from sifwright.cli.options.context import definitions, progress_of
from sifwright.cli.options.output import print_lines
from sifwright.errors import MachineError, UsageError
from sifwright.install.native import host_script, render_native
from sifwright.install.native.choose_version import choose_version
from sifwright.install.native.install import NativeRequest, install, remove_leftovers
from sifwright.install.native.native_folder import NativeFolder, native_folder
from sifwright.launch.submit import job_folder, jobs_place
from sifwright.launch.submit.tasks import installation_task
from sifwright.plan.model import Plan
from sifwright.plan.native import ENV_MANAGERS, with_env_manager
from sifwright.plan.resolve import resolve
from sifwright.plan.select_layers import IMAGES_ONLY
from sifwright.plan.tested_builds import untested

HELP = "install an image's layers on the host, without a container"
GROUP = "install"
ARGUMENTS = (
    *shared.PLAN,
    shared.PROGRESS,
    shared.argument(
        "--prefix", required=True, metavar="DIR", help="folder of the installation and its versions"
    ),
    shared.argument(
        "--env-manager",
        choices=tuple(ENV_MANAGERS),
        help="kind of Python environment (the site's native.env-manager, else venv)",
    ),
    shared.text("--module", "NAME/VERSION", "name of its module (PyTorch/VERSION-native)"),
    *submission.ARGUMENTS,
)


def run(arguments: Namespace) -> None:
    """Install what is missing; print how to use it."""
    submission.require_submit(arguments)
    if "," in f"{arguments.site}{arguments.image}":
        fix = "Give each installation a command and a --prefix."
        raise UsageError.of("an installation has one site and one image", fix=fix)
    folder, progress = native_folder(arguments.prefix), progress_of(arguments)
    folder.require_link()
    request = _request(arguments, folder)
    for left_out in request.plan.left_out:
        if left_out.reason == IMAGES_ONLY:
            progress.note(f"left out: layer '{left_out.layer}': {left_out.reason}")
    if arguments.submit is not None:
        _submit(arguments, request, progress.note)
        return
    print_lines(submission.way_out(arguments, request.plan.site), progress.note)
    is_current = request.is_current
    _name_unfinished(request, progress.note)
    state = "up to date"
    if is_current:
        # A reader may remove nothing, and another process may install another version.
        with suppress(MachineError, OSError):
            remove_leftovers(request)
    else:
        install(request, progress)
        state = "installed"
    _report(request, _module(arguments, request.plan), state, progress.note)


def _name_unfinished(request: NativeRequest, note: Callable[[str], None]) -> None:
    """Name the unfinished versions beside that of the plan."""
    for name, image in sorted(request.folder.unfinished().items()):
        version = request.folder.versions / name
        ends = "its own command finishes or replaces"
        if image == request.image:
            ends = "the next new version of the image replaces"
        if version != request.version and version.exists():
            note(f"unfinished: image {image}: {ends} {version}")


def _request(arguments: Namespace, folder: NativeFolder) -> NativeRequest:
    """Return the plan for the folder of its version, and all texts that it needs."""
    plan, version, damage = _plan(arguments, folder)
    module = _module(arguments, plan)
    native = _native(plan, version, module)
    return NativeRequest(
        plan=plan,
        settings=tuple(arguments.settings),
        folder=folder,
        version=version,
        damage=damage,
        modulefiles={
            f"{module}.lua": render_native.modulefile(native, "lua"),
            module: render_native.modulefile(native, "tcl"),
        },
        easyconfig=(f"{module.replace('/', '-')}.eb", render_native.easyconfig(native)),
        venv_hook=(f"{native.prefix}/bin/extend-venv-activate", render_native.venv_hook(module)),
    )


def _plan(arguments: Namespace, folder: NativeFolder) -> tuple[Plan, Path, str]:
    """Return the plan, the folder of its version, and a note of a damaged one.

    The name of the folder is an id of the plan for the prefix; the final plan has the folder.
    """
    catalog = definitions(arguments)  # a base image has no part in it
    site = native_site(arguments, catalog)
    catalog = with_env_manager(catalog, site, arguments.env_manager or "")
    words = arguments.site, arguments.image, arguments.settings
    named = resolve(catalog, *words, prefix=str(folder.root))
    version, damage = choose_version(folder, named.id)
    return resolve(catalog, *words, prefix=str(version)), version, damage


def _submit(arguments: Namespace, request: NativeRequest, note: Callable[[str], None]) -> None:
    """Submit one job, which goes on where an earlier one was stopped."""
    plan, root = request.plan, request.folder.root.absolute()
    words = submission.command_words(
        arguments,
        *("install", plan.site.name, plan.image.name, f"--prefix={root}"),
        *([f"--module={arguments.module}"] if arguments.module else []),
        *([f"--env-manager={arguments.env_manager}"] if arguments.env_manager else []),
    )
    chain = [] if request.is_current else [installation_task(plan, str(root), words)]
    home = jobs_place.of_installation(str(root))
    with job_folder.noted(home.jobs):
        submit_jobs.submit_tasks(arguments, [plan.site], [chain], home, note)


def _module(arguments: Namespace, plan: Plan) -> str:
    """Return --module, else a name with the version of torch."""
    if arguments.module:
        return module_name(arguments)
    if "torch" not in plan.facts:
        message = "the image has no torch to name the module after"
        raise UsageError.of(message, where=f"image '{plan.image.name}'", fix="Give --module.")
    return f"PyTorch/{plan.facts['torch']}-native"


def _native(plan: Plan, version: Path, module: str) -> render_native.Native:
    """Return the settings of the modulefiles."""
    rules = tuple(host_script.rules(plan, version))
    return render_native.Native(
        module=module,
        prefix=str(host_script.python_prefix(plan) or version),
        packages=f"lib/python{plan.facts['python']}/site-packages",
        site=plan.site,
        variables=tuple(x for x in rules if x.name not in host_script.ENVIRONMENT_NAMES),
        untested=untested(plan),
    )


def _report(request: NativeRequest, module: str, state: str, note: Callable[[str], None]) -> None:
    folder: NativeFolder = request.folder
    note(f"{state}: {folder.current} ({request.version.relative_to(folder.root)})")
    note(f"use it:     source {folder.current}/bin/activate")
    note(f"or:         module use {folder.modulefiles} && module load {module}")
