"""A plan whose options and environment hold what means something to a Dockerfile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from sifwright.catalog.model import Bootstrap, EnvRule, Image, Layer, LayerFile, Option, Value
from sifwright.catalog.options import variable
from sifwright.plan.model import Plan, Step
from tests.catalogs import REAL

if TYPE_CHECKING:
    from collections.abc import Sequence

SPECIAL = ("\\", "$", "{", "}", '"', "'", "`", "#", ":", "-", "+", "?", "=", "<", "E", " ", "[")
NASTY = (
    *(
        "",
        " ",
        "a  b",
        " lead",
        "trail ",
        "\\",
        "\\\\",
        "end\\",
        "\\$x",
        "$\\",
        "\\n",
        '\\"',
        "\\'",
    ),
    *("'", '"', '"\'"', "'$x'", "''", '""', "a$b", "${x}", "$$", "$", "${x:-y}", "${PATH}", "$("),
    *("`id`", "$(id)", "#", "# x", "#!x", "!", "*", "~", "%s", ";|&", "<<EOF", "EOF", "<<-'EOF'"),
    *("{", "}", "{}", "}}", '["a"]', "[", "--mount=x", "--x", "a=b", "=", "é", "漢", "\U0001f600"),
    *("escape=`", "syntax=x", "FROM scratch", "RUN", "&&", "\\ ", '\\\\"', "x" * 4096),
)
# Names of a layer's files. The SDK, as it reads .dockerignore, knows no names of the second kind.
FILES = ("trail ", "trail  ", " lead", "a b", "deep /x ", "#x", "!", "é ")
PATTERNS = ("[ ]", "a\\", "*", "a?", "[a", "a]", "? ", "\\ ")
_STRICT = "#!/bin/bash\nset -euo pipefail\n"


@dataclass(frozen=True, kw_only=True)
class Nasty:
    """`given` is what the layer's script must see, `declared` names what later layers must."""

    plan: Plan
    given: dict[str, str]
    declared: tuple[str, ...]


def nasty(values: Sequence[str], base: str) -> Nasty:
    """Return each value as an option, and in each kind of environment rule."""
    names = {f"o{number}": value for number, value in enumerate(values)}
    rules = [EnvRule(name=f"SET_{name}", action="set", value=names[name]) for name in names]
    rules += [EnvRule(name=f"DEF_{name}", action="default", value=names[name]) for name in names]
    more = [EnvRule(name=f"SET_{name}", action="prepend", value=names[name]) for name in names]
    start = (("Bootstrap", "docker"), ("From", base))
    lines = tuple(Bootstrap(keyword=key, literal=value) for key, value in start)
    layers = (
        Layer(name="base", summary="ends \\", install=_STRICT, bootstrap=lines),
        Layer(name="one", summary="escape=`", install=_keep("OPT_"), options=_options(names)),
        Layer(name="two", summary="syntax=x", install=_STRICT, env=tuple(rules)),
        Layer(name="three", summary='"', install=_STRICT, env=tuple(more)),
        Layer(name="four", summary="$x", install=_keep("SET_", "DEF_")),
    )
    text = " ".join(values)
    return Nasty(
        plan=_plan(layers, names, text if text.isprintable() else ""),
        given={variable(name): value for name, value in names.items()},
        declared=tuple(rule.name for rule in rules),
    )


def with_files(names: Sequence[str], base: str) -> Plan:
    """Make a layer with files of these names, which its step keeps."""
    result = nasty([], base).plan
    files = tuple(
        LayerFile(path=f"files/{name}", data=name.encode(), executable=False) for name in names
    )
    layer = replace(result.steps[1].layer, install=f"{_STRICT}cp -r files /opt/files\n")
    step = replace(result.steps[1], layer=layer, files=files)
    return replace(result, steps=(result.steps[0], step))


def _keep(*starts: str) -> str:
    pattern = "|".join(starts)
    return f"{_STRICT}mkdir -p /opt/seen\nenv -0 | grep -zE '^({pattern})' >/opt/seen/{starts[0]}\n"


def _options(names: dict[str, str]) -> dict[str, Option]:
    return {
        name: Option(name=name, type="string", description="any text", default="") for name in names
    }


def _plan(layers: Sequence[Layer], names: dict[str, str], description: str) -> Plan:
    site = REAL.sites["local"]
    steps = [
        Step(
            layer=layer,
            options={name: Value(value=names[name], origin="") for name in layer.options},
            files=(),
            sources=(),
            id=f"{number:064}",
        )
        for number, layer in enumerate(layers)
    ]
    image = Image(name="nasty", description=description, layers=())
    return Plan(site=site, image=image, steps=tuple(steps), facts={})
