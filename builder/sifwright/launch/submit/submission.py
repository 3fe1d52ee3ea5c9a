"""Decide how jobs are submitted: the scheduler, the site's directives, those of the user."""

import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sifwright.catalog.model import Site
from sifwright.errors import Problem, UsageError, quoted
from sifwright.launch import directive_rules, directives
from sifwright.launch.job_rules import ACCOUNTS
from sifwright.launch.model import JobRequest
from sifwright.launch.submit.jobs_place import JobsPlace
from sifwright.launch.submit.schedulers import SCHEDULERS, Scheduler
from sifwright.launch.submit.shared_folders import SharedFolder

# A path that every scheduler takes unchanged for a log: no blank, '%', '{', and for PBS no ':'.
_LOG_PATH = re.compile(r"[A-Za-z0-9._+=@,/-]+")
_DECIDED = {
    "slurm": {"output", "error", "e", "array", "a"},
    "pbs": {"o", "e", "j", "k", "J"},
    "flux": {"output", "error"},
}
ACCOUNT_DIRECTIVES = {"slurm": "account", "pbs": "A", "flux": "bank"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Submission:
    """The scheduler and the facts of its site, further directives, and where the jobs are.

    A job refuses to run on a node that does not see `folders`. `secrets` are the contents of files
    for steps.
    """

    scheduler: Scheduler
    site: Site
    directives: tuple[str, ...]
    home: JobsPlace
    folders: tuple[SharedFolder, ...] = ()
    secrets: Mapping[str, bytes] = field(default_factory=dict, repr=False)


def prepare(
    sites: Sequence[Site], scheduler: str, given: Sequence[str], home: JobsPlace
) -> Submission:
    """Return how to submit; raises `UsageError` for what the scheduler would refuse.

    Facts of a site are for its own scheduler only.
    """
    site = _site_of_jobs(sites, scheduler)
    name = site.scheduler
    if not _LOG_PATH.fullmatch(str(home.jobs)):
        message = f"{quoted(str(home.jobs))} cannot be a path in a job script"
        fix = "Choose a folder of letters, digits and '. _ - + = @ , /'."
        raise UsageError.of(message, where=home.words[0], fix=fix)
    problems = [
        *directive_rules.directive_problems(site, request(given)),
        *_decided(site, given),
    ]
    if problems:
        raise UsageError(*problems)
    _require_account(site, given)
    return Submission(
        scheduler=SCHEDULERS[name],
        site=site,
        directives=tuple(given),
        home=home,
    )


def _site_of_jobs(sites: Sequence[Site], scheduler: str) -> Site:
    """Return the site with the facts of the jobs; sites of other machines have no say.

    Raises `UsageError` without a scheduler, or if two sites have different facts.
    """
    own = [_for_builds(site) for site in sites if scheduler in {"", site.scheduler}]
    if lacking := [site.name for site in own if site.scheduler not in SCHEDULERS]:
        message = f"site '{lacking[0]}' has no scheduler"
        fix = f"Name this machine's: --submit {'|'.join(SCHEDULERS)}."
        raise UsageError.of(message, where="--submit", fix=fix)
    if not own:
        return _of_another(sites[0], scheduler)
    if other := next((site for site in own if _facts(site) != _facts(own[0])), None):
        message = f"jobs of sites '{own[0].name}' and '{other.name}' differ"
        fix = "Submit the images of one site at a time."
        raise UsageError.of(message, where="--submit", fix=fix)
    return own[0]


def _facts(site: Site) -> tuple[object, ...]:
    hours = site.builds.hours if site.builds else 0
    job = site.job
    return site.scheduler, hours, dict(site.proxies), dict(job.directives), job.needs_account


def _decided(site: Site, given: Sequence[str]) -> Iterator[Problem]:
    """Yield directives that would contradict a job that builds."""
    for text in given:
        if directives.parse_directive(site, text).name in _DECIDED[site.scheduler]:
            message = "jobs that build have a log of their own, and are no arrays"
            yield Problem(where=f"--directive {text}", what=message, fix="Leave it out.")


def request(given: Sequence[str] = ()) -> JobRequest:
    """Return the request of a job that builds, as the rules of directives read it."""
    return JobRequest(nodes=1, arguments=(), directives=tuple(given))


def account(scheduler: str) -> str:
    return os.environ.get(ACCOUNTS.get(scheduler, ""), "")


def _for_builds(site: Site) -> Site:
    """Return the site with the directives of builds, if it names any."""
    if not site.builds or not site.builds.directives:
        return site
    return replace(site, job=replace(site.job, directives=site.builds.directives))


def _of_another(site: Site, scheduler: str) -> Site:
    """Return the site without facts of its jobs and network: the jobs run on another machine."""
    job = replace(site.job, directives={}, needs_account=False)
    return replace(
        site, scheduler=scheduler, job=job, partitions={}, qos={}, proxies={}, builds=None
    )


def _require_account(site: Site, given: Collection[str]) -> None:
    """Raise `UsageError` if the site refuses jobs without an account and none is named."""
    name = site.scheduler
    named = {directives.parse_directive(site, text).name for text in given}
    if not site.job.needs_account or account(name):
        return
    if ACCOUNT_DIRECTIVES[name] not in named:
        message = f"the scheduler of site '{site.name}' refuses jobs without an account"
        directive = f"--directive {ACCOUNT_DIRECTIVES[name]}=PROJECT"
        fix = f"Set {ACCOUNTS.get(name, 'it')}, or give {directive}."
        raise UsageError.of(message, where="--submit", fix=fix)
