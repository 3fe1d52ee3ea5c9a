"""Words of shell that start the ranks in each engine of squashfs files and OCI images.

Sources: NVIDIA/pyxis, wiki "Usage"; eth-cscs/cscs-docs, docs/software/container-engine/edf.md;
podman-run(1); NERSC/podman-hpc, README; NERSC/shifter, doc/manuals/bash.
"""

from sifwright.catalog.model import Site
from sifwright.launch.model import Job

# Apptainer's own program in every image: it sets the image's environment and starts a command.
EXEC = "/.singularity.d/actions/exec"
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

# The folders of a container are those of the host where Apptainer has them, too.
_PYXIS = (
    '--container-image="$IMAGE"',
    '--container-mounts="$mounts"',
    '--container-workdir="$PWD"',
    "--no-container-entrypoint",
)
_OPTIONS = {"pyxis": _PYXIS, "container-engine": ('--environment="$edf"',)}
_PODMAN = (
    *("run", "--rm", "--env-host", f"--env=PATH={_PATH}", "--network=host", "--ipc=host"),
    *('--workdir="$PWD"', '"${devices[@]}"', '"${mounts[@]}"'),
)


def launcher_options(job: Job) -> tuple[str, ...]:
    """Return the options that make srun start its tasks in containers."""
    return _OPTIONS.get(job.site.container_product, ())


def command(job: Job) -> str:
    """Return the command that starts a program in the image."""
    site, product = job.site, job.site.container_product
    # Without the image's own environment, a task has the host's search path.
    words = ["env", f"PATH={_PATH}", EXEC]
    if product in {"podman", "podman-hpc"}:
        words = [product, *_PODMAN, *_gpus(site), '"$IMAGE"']
    elif product == "shifter":
        gpus = ["--module=gpu"] if site.vendor == "nvidia" else []
        words = ["shifter", '--image="$IMAGE"', *gpus, EXEC]
    return " ".join(words)


def _gpus(site: Site) -> tuple[str, ...]:
    if site.container_product == "podman-hpc":
        return ("--gpu",) if site.vendor == "nvidia" else ()
    by_vendor = {
        "amd": ("--device=/dev/kfd", "--device=/dev/dri"),
        "nvidia": ("--device=nvidia.com/gpu=all",),
    }
    return by_vendor.get(site.vendor, ())
