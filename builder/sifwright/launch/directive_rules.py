"""Refuse directives that a scheduler would refuse later, or read otherwise."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from sifwright.catalog.model import Site
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import Problem, quoted
from sifwright.launch.directives import OPTIONS, Directive, own, parse_directive
from sifwright.launch.model import Job, JobRequest

# Schedulers read directives with rules of their own for blanks, quotes, backslashes and '#'.
_VALUE = re.compile(r"[A-Za-z0-9_.,:=+@%/&|*!()\[\]{}][A-Za-z0-9_.,:=+@%/&|*!()\[\]{}-]{0,254}")
_DIRECTIVE = re.compile(rf"-{{0,2}}[A-Za-z][A-Za-z0-9-]*(={_VALUE.pattern})?")
_PLAIN = "Use letters, digits and plain punctuation: no blanks, quotes, '#', '$' or '~'."
_SCHEDULERS = {"slurm": "Slurm", "pbs": "PBS", "flux": "Flux"}
_ANYWAY = "--directive {}={}"
# Directives that the script and its launcher decide, and the option or key to use instead.
_RESOURCES, _SHORTEST = ("gres", "tres-per-node", "tres-per-task", "tres-per-job"), 3
_RANKS, _GPUS = "--tasks-per-node", "node.gpus in the site's file"
_CPUS = "node.cpus-per-task in the site's file"
_DECIDED: Mapping[str, Mapping[str, str]] = {
    "slurm": {
        **dict.fromkeys(("ntasks", "ntasks-per-node", "ntasks-per-gpu"), _RANKS),
        **dict.fromkeys(("ntasks-per-core", "ntasks-per-socket"), _RANKS),
        **dict.fromkeys(("cpus-per-task", "cpus-per-gpu"), _CPUS),
        **dict.fromkeys(("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket"), _GPUS),
        "nodes": "--nodes",
        "job-name": "--name",
        "time": "--time",
        "account": "--account",
        "signal": "--signal",
        "output": "--job-output",
    },
    "pbs": {
        "l select": "--nodes and --tasks-per-node",
        "l nodes": "--nodes",
        "N": "--name",
        **dict.fromkeys(("l ncpus", "l ngpus", "l mpiprocs"), "job.select in the site's file"),
        "l walltime": "--time",
        "A": "--account",
        "o": "--job-output",
    },
    "flux": {
        **dict.fromkeys(("nslots", "cores-per-slot", "gpus-per-slot"), _RANKS),
        "nodes": "--nodes",
        "job-name": "--name",
        "time-limit": "--time",
        "bank": "--account",
        "signal": "--signal",
        "output": "--job-output",
    },
}


def directive_problems(site: Site, request: JobRequest) -> Iterator[Problem]:
    """Yield every reason why a directive of the request cannot be written."""
    if site.scheduler == "local":
        yield from _without_scheduler(site, request)
        return
    malformed = [*_options(site, request), *_forms(site, request)]
    yield from malformed
    if not malformed:
        yield from _listed(site, request)
        yield from _constraint(site, request)


def _requested_options(request: JobRequest) -> dict[str, str]:
    fields = dict.fromkeys(field for names in OPTIONS.values() for field in names)
    return {field: value for field in fields if (value := getattr(request, field))}


def _where(field: str, value: str) -> str:
    shown = value if _VALUE.fullmatch(value) else quoted(value)
    return f"--{field.replace('_', '-')} {shown}"


def _without_scheduler(site: Site, request: JobRequest) -> Iterator[Problem]:
    requested = [
        *_requested_options(request).items(),
        *(("directive", text) for text in request.directives),
    ]
    for field, value in requested:
        message = f"site '{site.name}' has no scheduler that could read it"
        yield Problem(where=_where(field, value), what=message, fix="Leave it out.")


def _options(site: Site, request: JobRequest) -> Iterator[Problem]:
    """Yield options without a directive of this scheduler, and values that none can carry."""
    for field, value in _requested_options(request).items():
        if field not in OPTIONS[site.scheduler]:
            message = f"{_SCHEDULERS[site.scheduler]}, the scheduler of '{site.name}', has none"
            fix = "Leave it out, or write the site's own: --directive NAME=VALUE."
            yield Problem(where=_where(field, value), what=message, fix=fix)
        elif not _VALUE.fullmatch(value):
            message = "cannot stand in a job script"
            yield Problem(where=_where(field, value), what=message, fix=_PLAIN)


def _forms(site: Site, request: JobRequest) -> Iterator[Problem]:
    for text in request.directives:
        directive = parse_directive(site, text)
        if not _DIRECTIVE.fullmatch(text) or (directive.name == "l" and "=" not in directive.value):
            message, fix = "is no NAME or NAME=VALUE of a directive", f"As in mem=480G. {_PLAIN}"
            yield Problem(where=f"--directive {quoted(text)}", what=message, fix=fix)
        elif directive.name == "l" and "," in directive.value:
            message, fix = "names several resources", "Give each a --directive of its own."
            yield Problem(where=f"--directive {quoted(text)}", what=message, fix=fix)


def _listed(site: Site, request: JobRequest) -> Iterator[Problem]:
    """Yield partitions and qualities of service that are not in the site's list."""
    lists = {"partition": ("partitions", site.partitions), "qos": ("qos", site.qos)}
    for field, (key, known) in lists.items():
        name = OPTIONS[site.scheduler].get(field, "")
        for value in getattr(request, field).split(","):
            if value and known and value not in known:
                message = f"'{value}' is not in the list '{key}' of defs/sites/{site.name}.yaml"
                anyway = _ANYWAY.format(name, value)
                fix = f"{did_you_mean(value, known)} To ask for it anyway: {anyway}"
                yield Problem(where=_where(field, value), what=message, fix=fix)


def _constraint(site: Site, request: JobRequest) -> Iterator[Problem]:
    """Yield a constraint with alternatives, which '&' cannot join to the site's own."""
    name = OPTIONS[site.scheduler].get("constraint", "")
    of_site, value = str(site.job.directives.get(name, "")), request.constraint
    if value and of_site and of_site not in value and re.search(r"[|*()\[\],]", value):
        message = f"lacks '{of_site}', which site '{site.name}' asks for (job.directives.{name})"
        fix = f"Write '{of_site}' into it, or go without: {_ANYWAY.format(name, value)}"
        yield Problem(where=_where("constraint", value), what=message, fix=fix)


def contradictions(job: Job) -> Iterator[Problem]:
    """Yield every `--directive` that says otherwise than the script or another option."""
    site, request = job.site, job.request
    written = own(replace(job, request=replace(request, directives=())))
    seen = {OPTIONS[site.scheduler].get(field, ""): field for field in _requested_options(request)}
    for text in request.directives:
        directive, where = parse_directive(site, text), f"--directive {text}"
        mine = written.get(directive.key)
        if directive.key in seen:
            message = f"--{seen[directive.key].replace('_', '-')} says it, too"
            yield Problem(where=where, what=message, fix="Keep one of the two.")
        elif mine != directive and (decided := _decided(site, directive)):
            message = f"the script and its launcher have {mine or 'numbers of their own'}"
            yield Problem(where=where, what=message, fix=f"Use {decided}.")
        seen.setdefault(directive.key, "directive")


def _decided(site: Site, directive: Directive) -> str:
    """Return the option or the fact that a directive would contradict; empty if none."""
    if directive.name in _RESOURCES and site.scheduler == "slurm":
        return _GPUS if site.job.gpu_directive == "gres" or "gpu" in directive.value else ""
    known = _DECIDED[site.scheduler]
    # sbatch and flux take the beginning of a name for the name (getopt_long, argparse).
    begun = (
        name for name in known if len(directive.key) >= _SHORTEST and name.startswith(directive.key)
    )
    return known.get(directive.key) or known.get(next(begun, ""), "")
