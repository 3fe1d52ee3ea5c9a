"""Decide how jobs are submitted: the scheduler, the site's directives, those of the user."""

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from sifwright.catalog.model import Site
from sifwright.errors import UsageError
from sifwright.launch import directive_rules, directives
from sifwright.launch.job_rules import ACCOUNTS
from sifwright.launch.model import JobRequest
from sifwright.launch.submit.jobs_place import JobsPlace
from sifwright.launch.submit.schedulers import SCHEDULERS, Scheduler
from sifwright.launch.submit.shared_folders import SharedFolder

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

    @property
    def account(self) -> str:
        """Return the account that the environment names."""
        return account(self.scheduler.name, os.environ)


def prepare(site: Site, scheduler: str, given: Sequence[str], home: JobsPlace) -> Submission:
    """Return how to submit; raises `UsageError` for what the scheduler would refuse.

    Facts of the site are for its own scheduler only.
    """
    name = scheduler or site.scheduler
    if name not in SCHEDULERS:
        message = f"site '{site.name}' has no scheduler"
        fix = f"Name this machine's: --submit {'|'.join(SCHEDULERS)}."
        raise UsageError.of(message, where="--submit", fix=fix)
    site = _for_builds(site) if name == site.scheduler else _of_another(site, name)
    if problems := list(directive_rules.directive_problems(site, request(given))):
        raise UsageError(*problems)
    _require_account(site, given)
    return Submission(
        scheduler=SCHEDULERS[name],
        site=site,
        directives=tuple(given),
        home=home,
    )


def request(given: Sequence[str] = ()) -> JobRequest:
    """Return the request of a job that builds, as the rules of directives read it."""
    return JobRequest(nodes=1, arguments=(), directives=tuple(given))


def account(scheduler: str, environ: Mapping[str, str]) -> str:
    return environ.get(ACCOUNTS.get(scheduler, ""), "")


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
    named = {directives.given(site, text).name for text in given}
    if not site.job.needs_account or account(name, os.environ):
        return
    if ACCOUNT_DIRECTIVES[name] not in named:
        message = f"the scheduler of site '{site.name}' refuses jobs without an account"
        directive = f"--directive {ACCOUNT_DIRECTIVES[name]}=PROJECT"
        fix = f"Set {ACCOUNTS.get(name, 'it')}, or give {directive}."
        raise UsageError.of(message, where="--submit", fix=fix)
