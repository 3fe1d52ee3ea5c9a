"""Render a plan as a Dockerfile and the files that it copies.

For the classic builder as well: its language has neither here-documents nor `--mount`. `RUN` is
written as JSON, which no shell reads; `ENV` and `LABEL` have quoting rules of their own.
"""

import json
import re
from collections.abc import Iterable, Iterator

from sifwright.catalog.model import EnvRule, LayerFile
from sifwright.catalog.options import variable
from sifwright.errors import PlanError
from sifwright.plan.model import Plan, Step
from sifwright.render import build_files, oci_config, shell
from sifwright.render.templating import template

# Docker refuses more than 125 (maxLayerDepth in layer/layer_store.go); a base image has some.
_MAX_LAYERS = 100
# Characters with a meaning between double quotes of ENV and LABEL, and in a word after `:-`.
_SPECIAL = re.compile(r'[\\"$]')
_SPECIAL_INNER = re.compile(r"""[\\"'$}]""")
# The text of a rule by its action.
_ENV = {
    "prepend": '{name}="{value}${{{name}:+:${name}}}"',
    "append": '{name}="${{{name}:+${name}:}}{value}"',
    "default": '{name}="${{{name}:-{value}}}"',
    "set": '{name}="{value}"',
}
# The special characters of .dockerignore.
_MATCHED, _LAST_SPACES = re.compile(r"[\\*?\[\]]"), re.compile(r"\s+\Z")


def dockerfile(plan: Plan, base: str) -> str:
    """Render the Dockerfile; `base` is where this machine finds the image that it starts from.

    Raises `PlanError` for what a Dockerfile cannot say.
    """
    start = oci_config.start(plan)
    _refuse_many_layers(plan)
    filters = (("word", _word), ("words", _word), ("quoted", _quoted))
    return template("render/templates/dockerfile.j2", *filters).render(
        mark=build_files.MARK,
        plan=plan,
        base=base,
        root=start if isinstance(start, oci_config.Debootstrap) else None,
        rootfs=oci_config.ROOT,
        path=oci_config.DEFAULT_PATH,
        steps=list(map(_step, plan.steps)),
        config=oci_config.image_config(plan, {}),
    )


def _refuse_many_layers(plan: Plan) -> None:
    if 2 * len(plan.steps) > _MAX_LAYERS:
        message = f"its {len(plan.steps)} layers, two of Docker's each, are more than it stacks"
        fix = "Make one layer of several, or build with Apptainer: sifwright build."
        raise PlanError.of(message, where=f"image '{plan.image.name}'", fix=fix)


def _step(step: Step) -> dict[str, object]:
    return {
        "layer": step.layer,
        "id": step.id,
        "given": [
            *(f"{variable(name)}={value.text}" for name, value in step.options.items()),
            *map(shell.source, step.sources),
        ],
        "env": list(map(_env, step.layer.env)),
    }


def _word(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)


def _env(rule: EnvRule) -> str:
    """Return the text after ENV; `default` keeps the value of a base image."""
    special = _SPECIAL_INNER if rule.action == "default" else _SPECIAL
    value = special.sub(r"\\\g<0>", rule.value)
    return _ENV[rule.action].format(name=rule.name, value=value)


def _quoted(value: str) -> str:
    escaped = _SPECIAL.sub(r"\\\g<0>", value)
    return f'"{escaped}"'


def files(plan: Plan, base: str, copied: Iterable[LayerFile]) -> Iterator[LayerFile]:
    """Yield the Dockerfile, and .dockerignore that lets in the files that it copies."""
    yield LayerFile.of_text("Dockerfile", dockerfile(plan, base))
    patterns = map(_pattern, sorted(file.path for file in copied))
    yield LayerFile.of_text(".dockerignore", "".join(["*\n", *(f"!{text}\n" for text in patterns)]))


def _pattern(path: str) -> str:
    """Return a pattern for this path only; brackets keep its last spaces, which engines trim."""
    text = _MATCHED.sub(r"\\\g<0>", path)
    return _LAST_SPACES.sub(lambda match: "".join(f"[{space}]" for space in match[0]), text)
