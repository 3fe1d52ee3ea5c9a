"""Check a site and its image against all rules, and report reason and source."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path as FilePath
from typing import Literal

from sifwright.catalog import yaml_file
from sifwright.catalog.model import Catalog, Site
from sifwright.catalog.yaml_document import Document, Path
from sifwright.errors import CatalogError, PlanError, Problem, SifwrightError
from sifwright.plan.lint import image_rules, site_rules
from sifwright.plan.lint.rule import Violation, texts
from sifwright.plan.model import Plan
from sifwright.plan.resolve import get_or_suggest, resolve

Locate = Callable[[Path], str]

_REFUSED = "plan"


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """A violation, a limit or an assumption of a site or of an image there.

    A `note` is a warning that the site's file answers with a reason (`answer`). Or it is a sentence
    of the file about something not verified or not supported.
    """

    rule: str
    severity: Literal["error", "warning", "note"]
    where: str
    what: str
    why: str = ""
    source: str = ""
    fix: str = ""
    answer: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class LintReport:
    """All findings about a site and one image there."""

    site: str
    image: str
    findings: tuple[Finding, ...]

    def lines(self) -> Iterator[str]:
        """Yield the report as text: a line for each finding, with its reasons below it."""
        for finding in self.findings:
            yield f"{finding.where}: {finding.severity}: {finding.what} [{finding.rule}]"
            last = ("deliberate", finding.answer) if finding.answer else ("do", finding.fix)
            reasons = (("why", finding.why), ("source", finding.source), last)
            yield from (f"    {key + ':':<12}{text}" for key, text in reasons if text)
        counts = ", ".join(map(self._count, ("error", "warning", "note")))
        yield f"site '{self.site}', image '{self.image}': {counts}"

    def error(self) -> SifwrightError | None:
        """Return the error that ends the command: of the image alone, or of the site's file."""
        rules = {finding.rule for finding in self.findings if finding.severity == "error"}
        if not rules:
            return None
        kind = _kind(rules)
        message = f"site '{self.site}' does not pass lint: {', '.join(sorted(rules))}"
        return kind.of(message, fix="Each finding above says what to do.")

    def _count(self, severity: str) -> str:
        number = sum(finding.severity == severity for finding in self.findings)
        return f"{number} {severity}{'' if number == 1 else 's'}"


def lint_site(
    catalog: Catalog,
    defs: FilePath,
    names: tuple[str, str],
    settings: Sequence[str],
    *,
    looked: Callable[[Catalog], Catalog] = lambda catalog: catalog,
) -> LintReport:
    """Check a site and one of its images against all rules; a refused plan is a finding.

    `names` are those of the site and the image. `looked` gives the definitions with what is in the
    image that this one starts from.
    """
    site = get_or_suggest(catalog.sites, names[0], "site")
    image = get_or_suggest(catalog.images, names[1] or site.image, "image")
    locate = locator(defs, site)
    findings = list(_of_site(site, locate))
    try:
        findings += _of_image(resolve(looked(catalog), site.name, image.name, settings), locate)
    except PlanError as error:
        findings += map(_refused, error.problems)
    order = ("error", "warning", "note")
    findings.sort(key=lambda finding: order.index(finding.severity))
    return LintReport(site=site.name, image=image.name, findings=tuple(findings))


def locator(defs: FilePath, site: Site) -> Locate:
    """Return a function that gives file and line of a path in the site's file, or of its parent."""
    file = defs / "sites" / f"{site.name}.yaml"
    name = file.relative_to(defs.parent)

    @cache
    def document() -> Document:
        return yaml_file.parse_yaml(file.read_bytes(), str(name))

    return lambda path: f"{name}:{document().line(path)}"


def errors(plan: Plan, defs: FilePath) -> list[Finding]:
    """Return the errors of a plan's site and image: they hang, crash or stay off the network."""
    locate = locator(defs, plan.site)
    return _errors((*_of_site(plan.site, locate), *_of_image(plan, locate)))


def refuse(site: Site, locate: Locate) -> None:
    """Raise `CatalogError` with the errors in the site's facts: no job is written with them."""
    _raise(_errors(_of_site(site, locate)))


def refuse_image(plan: Plan, defs: FilePath) -> None:
    """Raise the errors of a plan's site and image, as the class of error that they are."""
    _raise(errors(plan, defs))


def _errors(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.severity == "error"]


def _raise(errors: Sequence[Finding]) -> None:
    if errors:
        problems = (
            Problem(where=error.where, what=f"{error.what}: {error.why}", fix=error.fix)
            for error in errors
        )
        raise _kind({error.rule for error in errors})(*problems)


def _kind(rules: set[str]) -> type[SifwrightError]:
    """Return the class of the error: of the site's file, unless all errors are the image's."""
    of_image = {_REFUSED, *image_rules.RULES}
    return PlanError if rules <= of_image else CatalogError


def _of_site(site: Site, locate: Locate) -> Iterator[Finding]:
    """Yield what is wrong with the site's own facts, and its limits and assumptions."""
    for rule, find in site_rules.RULES.items():
        yield from _make_findings(rule, find(site), site, locate)
    for key in ("limits", "unverified"):
        for number, text in enumerate(getattr(site, key)):
            yield Finding(rule=key, severity="note", where=locate((key, number)), what=text)


def _of_image(plan: Plan, locate: Locate) -> Iterator[Finding]:
    """Yield what is wrong with an image at its site, though its layers go together."""
    for rule, find in image_rules.RULES.items():
        yield from _make_findings(rule, find(plan), plan.site, locate)


def _refused(problem: Problem) -> Finding:
    return Finding(
        rule=_REFUSED,
        severity="error",
        where=problem.where,
        what=problem.what,
        source="defs/versions.yaml, the headers of the layers and the image they start from",
        fix=problem.fix,
    )


def _make_findings(
    rule: str, hits: Iterator[Violation], site: Site, locate: Locate
) -> Iterator[Finding]:
    for hit in hits:
        rule_text = texts()[rule]
        answer = _answer(site, hit, rule) if rule_text["severity"] == "warning" else ""
        yield Finding(
            rule=rule,
            severity="note" if answer else rule_text["severity"],
            where=hit.at or locate(hit.path),
            what=hit.what,
            why=rule_text["why"],
            source=rule_text["source"],
            fix=hit.fix or rule_text["fix"],
            answer=answer,
        )


def _answer(site: Site, hit: Violation, rule: str) -> str:
    """Return the reason that the site's file gives for a variable despite this rule."""
    reason = site.variable_reasons.get(hit.path)
    return reason.why if reason and rule in reason.despite else ""
