"""The result of an audit: findings, and what was not compared."""

from dataclasses import dataclass
from typing import Literal
from urllib.parse import quote

Rule = Literal["security-update", "vulnerability", "yanked", "stale-base", "stale-pin"]
RULES: dict[Rule, str] = {
    "security-update": "A package is older than the security archive of its distribution",
    "vulnerability": "A Python package has a published vulnerability (OSV)",
    "yanked": "A Python package's version was withdrawn from its index",
    "stale-base": "The base image's tag leads to another image now",
    "stale-pin": "A pinned source is no longer what was pinned",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """`fixed` is the version that has no such fault; `identity` that of an advisory, if any."""

    rule: Rule
    package: str
    version: str
    fixed: str = ""
    identity: str = ""
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """`compared` says what with, `unchecked` what was not compared and why."""

    image: str
    findings: tuple[Finding, ...]
    compared: tuple[str, ...]
    unchecked: tuple[str, ...]

    def sarif(self) -> dict[str, object]:
        """Return SARIF 2.1.0, which code hosts show beside a repository's other findings."""
        from sifwright import __version__  # noqa: PLC0415

        rules = [{"id": rule, "shortDescription": {"text": text}} for rule, text in RULES.items()]
        driver = {"name": "sifwright audit", "version": __version__, "rules": rules}
        notes = [{"level": "note", "message": {"text": f"compared: {x}"}} for x in self.compared]
        notes += [
            {"level": "warning", "message": {"text": f"not compared: {x}"}} for x in self.unchecked
        ]
        run = {
            "tool": {"driver": driver},
            "invocations": [{"executionSuccessful": True, "toolExecutionNotifications": notes}],
            "results": list(map(self._sarif, self.findings)),
        }
        return {
            "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
            "version": "2.1.0",
            "runs": [run],
        }

    def _sarif(self, finding: Finding) -> dict[str, object]:
        logical = {"name": finding.package, "fullyQualifiedName": f"{self.image}#{finding.package}"}
        # Code hosts show no result without a file and a line.
        file = {"artifactLocation": {"uri": quote(self.image)}, "region": {"startLine": 1}}
        key = f"{finding.rule}/{finding.package}/{finding.version}/{finding.identity}"
        return {
            "ruleId": finding.rule,
            "ruleIndex": list(RULES).index(finding.rule),
            "level": "error" if finding.rule in {"security-update", "vulnerability"} else "warning",
            "message": {"text": f"{finding.package} {finding.version}: {finding.message}"},
            "locations": [{"physicalLocation": file, "logicalLocations": [logical]}],
            "partialFingerprints": {"sifwright/v1": key},
        }
