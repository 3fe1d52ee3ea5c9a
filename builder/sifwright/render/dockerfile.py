"""Render a plan as a Dockerfile and the files that it copies.

For the classic builder as well, whose language has neither here-documents nor `--mount`. `RUN` is
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
# The same of .dockerignore.
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
        "given": list(_given(step)),
        "env": list(map(_env, step.layer.env)),
    }


def _given(step: Step) -> Iterator[str]:
    for name, value in step.options.items():
        yield f"{variable(name)}={value.text}"
    for item in step.sources:
        yield shell.source(item)


def _word(text: object) -> str:
    return json.dumps(text, ensure_ascii=False)


def _env(rule: EnvRule) -> str:
    """Return the text after ENV; `default` keeps the value of a base image."""
    if rule.action == "prepend":
        return f'{rule.name}="{_escaped(rule.value)}${{{rule.name}:+:${rule.name}}}"'
    if rule.action == "append":
        return f'{rule.name}="${{{rule.name}:+${rule.name}:}}{_escaped(rule.value)}"'
    if rule.action == "default":
        value = _SPECIAL_INNER.sub(r"\\\g<0>", rule.value)
        return f'{rule.name}="${{{rule.name}:-{value}}}"'
    return f"{rule.name}={_quoted(rule.value)}"


def _quoted(value: str) -> str:
    return f'"{_escaped(value)}"'


def _escaped(value: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", value)


def files(plan: Plan, base: str, copied: Iterable[LayerFile]) -> Iterator[LayerFile]:
    """Yield the Dockerfile, and .dockerignore that lets in the files that it copies."""
    yield LayerFile.of_text("Dockerfile", dockerfile(plan, base))
    yield LayerFile.of_text(".dockerignore", _ignore(file.path for file in copied))


def _ignore(paths: Iterable[str]) -> str:
    lines = (f"!{_pattern(path)}" for path in sorted(paths))
    return "".join(f"{line}\n" for line in ("*", *lines))


def _pattern(path: str) -> str:
    """Return a pattern for this path only; brackets keep its last spaces, which engines trim."""
    text = _MATCHED.sub(r"\\\g<0>", path)
    return _LAST_SPACES.sub(lambda match: "".join(f"[{space}]" for space in match[0]), text)
