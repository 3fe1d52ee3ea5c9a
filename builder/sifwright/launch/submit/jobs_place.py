"""The folder of the jobs of some images, or of an installation, and their logs."""

from dataclasses import dataclass
from pathlib import Path

from sifwright.launch.submit.graph import BuildJob


@dataclass(frozen=True, kw_only=True, slots=True)
class JobsPlace:
    """`jobs` has a folder for each job; `images` is None for an installation.

    `words` are those of `status` and `cancel` for it.
    """

    jobs: Path
    words: tuple[str, ...]
    images: Path | None = None

    def log(self, job: BuildJob) -> Path:
        """Return the log of a job, which is beside its first image or the installation."""
        folder = self.images / job.images[0] if self.images else self.jobs
        return folder / f"{job.tasks[-1].name}.job.log"


def of_images(output: str) -> JobsPlace:
    """Return the place in the folder of images."""
    folder = Path(output).absolute()
    return JobsPlace(jobs=folder / "jobs", images=folder, words=("--output", output))


def of_installation(prefix: str) -> JobsPlace:
    """Return the place beside the prefix, which an installation makes by itself."""
    folder = Path(prefix).absolute()
    jobs = folder.with_name(f"{folder.name}.jobs")
    return JobsPlace(jobs=jobs, words=("--prefix", str(folder)))
