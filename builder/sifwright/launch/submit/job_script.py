"""Write the folder of a job: the script, and the settings beside it."""

import math
import shutil
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from sifwright.launch import directives
from sifwright.launch.directives import MARKS, Directive, further
from sifwright.launch.jobscript import word, words
from sifwright.launch.submit import job_folder, job_settings
from sifwright.launch.submit.graph import BuildJob
from sifwright.launch.submit.submission import ACCOUNT_DIRECTIVES, Submission, account, request
from sifwright.render.templating import template

_EARLIER_LOG = "earlier.log"


@dataclass(frozen=True, kw_only=True, slots=True)
class WrittenJob:
    """A job with a complete folder."""

    folder: Path
    log: Path

    @property
    def script(self) -> Path:
        return self.folder / job_folder.SCRIPT


def write(submission: Submission, job: BuildJob) -> WrittenJob:
    """Write the folder of a job, with all that it needs to start, and with an earlier job's log."""
    home = submission.home
    written = WrittenJob(
        folder=job_folder.free_folder(home.jobs, job.name, job.key), log=home.log(job)
    )
    written.log.parent.mkdir(parents=True, exist_ok=True)
    job_folder.make(written.folder)
    try:
        # PBS would append to it.
        with suppress(FileNotFoundError):
            shutil.move(written.log, written.folder / _EARLIER_LOG)
        job_settings.write(written.folder / job_folder.SETTINGS, submission.secrets)
        text = render_script(submission, job, written.folder, written.log)
        written.script.write_text(text, encoding="utf-8")
    except BaseException:
        discard(written.folder, written.log)
        raise
    return written


def discard(folder: Path, log: Path) -> None:
    """Remove the folder of a job that was not submitted; put the earlier log back."""
    with suppress(FileNotFoundError):
        shutil.move(folder / _EARLIER_LOG, log)
    job_folder.discard(folder)


def render_script(submission: Submission, job: BuildJob, folder: Path, log: Path) -> str:
    """Return the text of the job script, which holds no setting of this machine."""
    filters = (("word", word), ("words", words))
    program = [sys.executable, "-P", "-m", "sifwright", *job.tasks[-1].words]
    program += job_settings.secret_words(folder / job_folder.SETTINGS, submission.secrets)
    return template("launch/templates/build.sh.j2", *filters).render(
        mark=MARKS[submission.scheduler.name],
        directives=[str(directive) for directive in _directives(submission, job, log)],
        images=" ".join(job.images),
        folder=str(folder),
        start=str(Path.cwd()),
        folders=submission.folders,
        proxies=submission.site.proxies,
        command=program,
    )


def longest(submission: Submission) -> float:
    """Return the most hours that the site's queue gives a job; another queue has another limit.

    Installations and builds go on where an earlier job ended.
    """
    site = submission.site
    of_site = {directive.key for directive in further(site, request())}
    given = {directives.parse_directive(site, text).key for text in submission.directives}
    limit = site.builds.hours if site.builds and not given & of_site else 0
    return limit or math.inf


def _directives(submission: Submission, job: BuildJob, log: Path) -> list[Directive]:
    """Return the directives of a job; those of the user replace all others."""
    scheduler, site = submission.scheduler, submission.site
    of_site = further(site, request())
    given = [directives.parse_directive(site, text) for text in submission.directives]
    wanted = replace(job.resources, hours=min(job.resources.hours, longest(submission)))
    title = "N" if scheduler.name == "pbs" else "job-name"
    pairs = [(title, job.name), *scheduler.resources(wanted), *scheduler.output(str(log))]
    if payer := account(scheduler.name):
        pairs.append((ACCOUNT_DIRECTIVES[scheduler.name], payer))
    own = [Directive(*pair) for pair in pairs]
    by_key = {directive.key: directive for directive in (*of_site, *own, *given)}
    return list(by_key.values())
