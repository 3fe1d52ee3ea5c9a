"""The command `build`: build an image of a plan, unless it is up to date."""

import shlex
from argparse import Namespace
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from sifwright.catalog import mirrors
from sifwright.catalog.project_folder import project_folder
from sifwright.cli.options import arguments as shared
from sifwright.cli.options import emulation, locks, matrix, submission
from sifwright.cli.options.context import (
    definitions,
    output_of,
    plan_of_part,
    progress_of,
    resolve_plan,
)
from sifwright.cli.options.output import print_lines
from sifwright.errors import UsageError
from sifwright.host.network import apt_mirror, pip_settings
from sifwright.launch.submit import jobs_place
from sifwright.launch.submit.graph import Task
from sifwright.make_image.check_machine import limit_checks
from sifwright.make_image.resolve_request.build_request import (
    BuildOptions,
    BuildRequest,
    request_build,
)
from sifwright.make_image.resolve_request.epoch import source_epoch
from sifwright.make_image.resolve_request.image_folder import ImageFolder
from sifwright.make_image.resolve_request.secrets import read_secrets
from sifwright.plan import site_policy
from sifwright.plan.lint import apply_rules as lint
from sifwright.plan.model import Plan
from sifwright.system import small_file
from sifwright.system.progress import Progress

HELP = "build the SIF, or an image with Docker, and test it"
GROUP = "build"
ARGUMENTS = (
    *shared.PLAN,
    matrix.ARGUMENT,
    *shared.BUILD_OPTIONS,
    shared.argument(
        "--engine",
        choices=("apptainer", "docker"),
        default="apptainer",
        help="run the steps by apptainer, or by Docker Engine or podman's service (docker)",
    ),
    shared.argument(
        "--format",
        choices=("sif", "image"),
        help="build a SIF, or an image of the engine (docker's default)",
    ),
    shared.SECRET,
    shared.text(
        "--until", "LAYER", "run the steps up to this layer's into the cache, and make no image"
    ),
    *locks.ARGUMENTS,
    shared.text(
        "--sign",
        "KEY",
        "sign the SIF: private key in PEM, or user or fingerprint of Apptainer's PGP keyring",
    ),
    *submission.ARGUMENTS,
)


def run(arguments: Namespace) -> None:
    """Build or submit the images; SITE and IMAGE may be several, with commas."""
    submission.require_submit(arguments)
    images = list(matrix.expand(arguments))
    if arguments.submit is not None:
        _submit(images)
        return
    for image in images:
        build(image)


def _submit(images: Sequence[Namespace]) -> None:
    """Submit the jobs that make what the images lack."""
    from sifwright.cli.options import submit_jobs  # noqa: PLC0415  # seldom needed

    first, progress = images[0], progress_of(images[0])
    named = (first.no_cache, first.until, first.sign, first.locked is not None, first.bundle)
    if any(named) or first.engine == "docker":
        words = "--no-cache, --engine docker, --until, --sign, --locked, --bundle"
        fix = f"Leave out {words}."
        raise UsageError.of("jobs hand over the steps in the step cache", where="--submit", fix=fix)
    plans = [resolve_plan(arguments) for arguments in images]
    scheduler = submission.scheduler_of(first)
    sites = [submission.site_of_jobs(plan.site, scheduler) for plan in plans]
    notes = (_notes(arguments, plan) for arguments, plan in zip(images, plans, strict=True))
    print_lines(dict.fromkeys(line for lines in notes for line in lines), progress.note)
    chains = [_tasks(*pair) for pair in zip(images, plans, strict=True)]
    home = jobs_place.of_images(first.output)
    submit_jobs.submit_tasks(first, sites, chains, home, progress.note)


def _tasks(arguments: Namespace, plan: Plan) -> list[Task]:
    from sifwright.launch.submit.tasks import image_tasks  # noqa: PLC0415  # seldom needed

    output = output_of(arguments, plan)
    words = submission.command_words(
        arguments,
        *("build", plan.site.name, plan.image.name),
        f"--output={Path(arguments.output).absolute()}",
        f"--tests={arguments.tests}",
        *(["--force"] if arguments.force else []),
        *([f"--layout={arguments.layout}"] if arguments.layout else []),
    )
    request = request_build(plan, output, _options(arguments, plan))
    return list(image_tasks(request, words))


def build(arguments: Namespace) -> None:
    """Build the image unless it is up to date; print where it is."""
    limit_checks.require()
    plan, progress = plan_of_part(arguments), progress_of(arguments)
    print_lines(_notes(arguments, plan), progress.note)
    request = request_build(plan, output_of(arguments, plan), _options(arguments, plan))
    _check_key(request)
    is_new = request.options.force or not request.is_current
    if is_new or arguments.until:
        pip_settings.start_pip_config()
        if not mirrors.load().of("apt"):
            apt_mirror.start_apt()
        definitions(arguments)  # their mistakes may be in files of other images
    if (is_new or arguments.until) and request.options.engine == "apptainer":
        emulation.start(plan, progress, compilers=arguments.emulate_compilers)
    if arguments.until:
        from sifwright.make_image.open_shell import build_steps  # noqa: PLC0415  # takes 0.3 s

        with locks.with_files(request, arguments, progress) as locked:
            build_steps(locked, arguments.until, progress)
        return
    if is_new:
        from sifwright.make_image.build_image import build_image  # noqa: PLC0415  # as above

        _note_damage(request, progress)
        with locks.with_files(request, arguments, progress) as locked:
            build_image(locked, progress)
    elif request.options.sign and not request.output.signature.exists():
        from sifwright.make_image.signing.sign import sign_image  # noqa: PLC0415  # seldom needed

        sign_image(request.output.link, request.options.sign)
    result = _image_result if request.output.tag else _sif_result
    print_lines(result(plan, request.output, "built" if is_new else "up to date"), progress.note)


def _check_key(request: BuildRequest) -> None:
    """Refuse a key that cannot sign, before a build that may take an hour."""
    if request.options.sign:
        from sifwright.make_image.signing.keys import find_key  # noqa: PLC0415  # seldom needed

        if request.output.tag:
            fix = "Build a SIF: --format sif."
            raise UsageError.of("an image of an engine cannot be signed", where="--sign", fix=fix)
        find_key(request.options.sign)


def _options(arguments: Namespace, plan: Plan) -> BuildOptions:
    lock = locks.lock_of(arguments, plan.site.name, plan.image.name)
    return BuildOptions(
        layout=arguments.layout or plan.site.layout,
        force=arguments.force,
        cached=not arguments.no_cache,
        tests=arguments.tests,
        engine=arguments.engine,
        secrets=read_secrets(arguments.secret),
        format=_format(arguments),
        lock=lock,
        epoch=lock.epoch if lock else source_epoch(),
        sign=arguments.sign,
    )


def _format(arguments: Namespace) -> Literal["sif", "image"]:
    of_engine: Literal["sif", "image"] = "sif" if arguments.engine == "apptainer" else "image"
    if arguments.format == "image" and of_engine == "sif":
        raise UsageError.of("Apptainer makes SIFs only", fix="--format sif, or --engine docker.")
    return arguments.format or of_engine


def _note_damage(request: BuildRequest, progress: Progress) -> None:
    """Report that the image itself was changed, not the plan."""
    output = request.output
    if not (output.tag or request.options.force) and (why := output.damage()):
        progress.note(f"{output.link}: {why.splitlines()[0]}; it is built again")


def _notes(arguments: Namespace, plan: Plan) -> Iterator[str]:
    """Yield notes, not refusals: a rule does not know what the image is for."""
    yield from site_policy.line(plan.site)
    yield from submission.way_out(arguments, plan.site)
    for error in lint.errors(plan, project_folder(arguments.project) / "defs"):
        yield f"lint: {error.where}: {error.what}: {error.why} [{error.rule}]"


def example_command(plan: Plan) -> str:
    """Return a command that shows what the image is for; none where it starts its own."""
    if not plan.has_run_scripts:
        return "" if plan.image.start else "bash"
    arguments = "-c 'import torch'" if "torch" in plan.facts else "--version"
    return f"conda-python-simple {arguments}"


def _image_result(plan: Plan, output: ImageFolder, state: str) -> Iterator[str]:
    record = small_file.read_json(output.record)
    size, engine = record["bytes"] / 1e6, record["engine"]
    yield f"{state}: {output.tag} in {engine} ({size:.0f} MB, plan {plan.id[:12]})"
    command = "podman" if engine.startswith("podman") else "docker"
    yield f"try it:     {command} run --rm -it {output.tag} {example_command(plan)}".rstrip()


def _sif_result(plan: Plan, output: ImageFolder, state: str) -> Iterator[str]:
    """Yield where the image is, and what to do next."""
    size, program = output.link.stat().st_size / 1e6, example_command(plan)
    yield f"{state}: {output.link} ({size:.0f} MB, plan {plan.id[:12]})"
    verb = "exec" if program else "run"
    yield f"try it:     singularity {verb} {shlex.quote(str(output.link))} {program}".rstrip()
    if older := output.older():
        size = sum(path.stat().st_size for path in older) / 1e6
        yield (
            f"older images: {len(older)} in {output.folder} ({size:.0f} MB);"
            " remove them when no job uses them"
        )
