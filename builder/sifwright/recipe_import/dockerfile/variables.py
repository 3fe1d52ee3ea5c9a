"""The variables of a Dockerfile: ENV, ARG, and the ENV of the base image."""

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from sifwright.recipe_import import env_rules, shell_words
from sifwright.recipe_import.dockerfile.instructions import Instruction
from sifwright.recipe_import.draft import Argument, Findings

_OPTION = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_FROZEN = {"ENV", "ARG", "COPY", "ADD", "WORKDIR", "USER"}


def frozen(listed: Iterable[Instruction]) -> set[str]:
    """Return the variables with values that are needed when the layers are written."""
    texts = (
        [item.text] * (item.name in _FROZEN) + [value for _, value in item.flags] for item in listed
    )
    return {name for words in texts for text in words for name in shell_words.named(text)}


@dataclass(kw_only=True, slots=True)
class Variables:
    """`line` is that of the instruction that is read; an ENV with an unknown value is None."""

    findings: Findings
    frozen: set[str]
    line: int = 0
    env: dict[str, str | None] = field(default_factory=dict)
    fixed: dict[str, str] = field(default_factory=dict)
    # The options of the ARGs so far: what they are called, and their value.
    options: dict[str, tuple[str, str | None]] = field(default_factory=dict)
    arguments: set[str] = field(default_factory=set)
    # The ENV of the base image, if it was asked, and what the next piece has of it.
    base: Mapping[str, str] | None = None
    taken: dict[str, str] = field(default_factory=dict)

    @property
    def home(self) -> str:
        return self.env.get("HOME") or (self.base or {}).get("HOME", "")

    def own(self, name: str) -> str | None:
        """Return the value that the recipe gives."""
        value = self.env.get(name) if name in self.env else self.fixed.get(name)
        return self.findings.count(self.line, value)

    def of_base(self, name: str) -> str | None:
        """Return what the base image says, '' if it says nothing; None if that is not known."""
        if self.base is None or name in self.env or name in self.arguments:
            return None
        if name in self.base:
            self.taken[name] = self.base[name]
        elif name != "PATH":
            self.findings.note(self.line, f"${name} is empty: neither recipe nor base image set it")
            return ""
        return self.findings.count(self.line, self.base.get(name))

    def lookup(self, name: str) -> str | None:
        value = self.own(name)
        return self.of_base(name) if value is None else value

    def comparisons(self) -> list[str]:
        """Return the lines of install.sh that compare the base image with what was taken of it."""
        code, self.taken = env_rules.base_code(self.taken), {}
        return code

    def append_values(self, text: str) -> str:
        """Return a text with the values of the variables that it names."""
        known = {**(self.base or {}), **dict(self.options.values()), **self.fixed, **self.env}
        return " ".join([text, *filter(None, map(known.get, sorted(shell_words.named(text))))])

    def argument(
        self, line: int, name: str, value: str | None
    ) -> tuple[list[str], Argument | None]:
        """Return the line of install.sh for an ARG, and its option; neither if it is refused."""
        option = name.lower().replace("_", "-")
        self.arguments.add(name)
        if name in self.frozen:
            self.findings.note(line, f"ARG {name} is fixed: ENV, ARG, COPY or WORKDIR need it")
            self.fixed.pop(name, None)
            self.fixed |= {} if value is None else {name: value}
            return [] if value is None else [f"fixed_argument {name} {shlex.quote(value)}"], None
        if not _OPTION.fullmatch(option) or name not in {name.upper(), name.lower()}:
            message = f"ARG {name!a}: no option can have that name"
            self.findings.refuse(line, message, "Use words joined by '_'.")
            return [], None
        named = (name, value)
        if self.options.setdefault(option, named) != named:
            message = f"ARG {name}: another ARG is the option '{option}' already"
            self.findings.refuse(line, message, "Give it another name, or one value.")
            return [], None
        given = f"$OPT_{option.upper().replace('-', '_')}"
        code = f'argument {name} "{given}"'
        code = code if value is not None else f"[[ -z {given} ]] || {code}"
        return [code], Argument(name=name, option=option, default=value or "", line=line)
