"""The facts of an image that was built elsewhere: read from its files, and nothing of it runs."""

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from sifwright.errors import UsageError
from sifwright.images.contents.layer_stack import LayerStack
from sifwright.images.sif import sif_file as sif_image
from sifwright.images.sif.format import NO_TIME
from sifwright.install import installed_image
from sifwright.install.installed_image import InstalledImage
from sifwright.plan import plan_file

_TORCH = re.compile(
    rb"(?P<prefix>.*?)lib(64)?/python(?P<python>3(\.[0-9]+)?)/(site|dist)-packages/torch/version\.py"
)
_ENVIRONMENT = re.compile(rb"\.singularity\.d/env/[^/]*\.sh")
_ROCM = re.compile(rb"opt/rocm(-[0-9.]+)?/\.info/version")
_LABELS = b".singularity.d/labels.json"
_SITE = b"etc/sifwright/site-environment"
# NAME = '…', with or without a type.
_VALUE = re.compile(r"^(\w+)[^=\n]*=\s*['\"]([^'\"\n]*)['\"]", re.MULTILINE)
_RELEASE = re.compile(r"[0-9]+(\.[0-9]+)+")
# Apptainer's date, in Go's words: Monday_2_January_2006_15:04:05_MST.
_BUILT = "%A_%d_%B_%Y"
_FIX = "Give the SIF of an image with PyTorch."


def inspect(sif: Path) -> InstalledImage:
    """Read a SIF; raises `UsageError` if it is none, or has no PyTorch."""
    stack = LayerStack.of(sif)
    patterns = (_TORCH, _ENVIRONMENT, _ROCM)
    wanted = {path for path in stack.tree if any(pattern.fullmatch(path) for pattern in patterns)}
    texts = stack.texts(wanted | {plan_file.IN_IMAGE, _LABELS})
    # The label of an image of ours has the same time at each build.
    is_ours = plan_file.IN_IMAGE in texts
    date = _date(sif, b"" if is_ours else texts.get(_LABELS, b""))
    facts = _of_torch(stack, texts, date)
    try:
        ours = installed_image.of_plan(plan_file.parse_plan(texts[plan_file.IN_IMAGE]), date)
    except (KeyError, ValueError):
        return facts
    # Facts read from the files count; only the plan knows the layers.
    names = ("image", "plan", "layers", "plugin", "mpi")
    return replace(facts, **{name: getattr(ours, name) for name in names})


def _of_torch(stack: LayerStack, texts: Mapping[bytes, bytes], date: str) -> InstalledImage:
    environment = b"\n".join(text for path, text in texts.items() if _ENVIRONMENT.fullmatch(path))
    match = _find_torch(stack, texts, environment)
    values = dict(_VALUE.findall(texts[match[0]].decode(errors="replace")))
    release = _RELEASE.match(values.get("__version__", ""))
    if release is None:
        raise _refused(stack.path, f"/{_decode_path(match[0])} names no version")
    return InstalledImage(
        torch=release[0],
        python=_python(stack, match),
        stack=_stack(values, texts),
        date=date,
        with_conda="" if b"WITH_CONDA=" in environment else _activation(stack, match["prefix"]),
        needs_site=_SITE not in stack.tree,
    )


def _find_torch(
    stack: LayerStack, texts: Mapping[bytes, bytes], environment: bytes
) -> re.Match[bytes]:
    """Return the path of torch; of several, that of the environment's prefix."""
    places = list(filter(None, map(_TORCH.fullmatch, sorted(texts))))
    if not places:
        raise _refused(stack.path, "there is no PyTorch in it")
    named = [match for match in places if b"/" + match[0].split(b"/lib")[0] + b"/" in environment]
    if len(places) > 1 and len(named) != 1:
        listed = ", ".join(f"/{_decode_path(match[0])}" for match in places)
        raise _refused(stack.path, f"it has several, and PATH does not tell which: {listed}")
    return named[0] if len(places) > 1 else places[0]


def _python(stack: LayerStack, match: re.Match[bytes]) -> str:
    """Return the version of Python; Debian's packages are in /usr/lib/python3 for all versions."""
    version = match["python"].decode()
    if "." in version:
        return version
    link = stack.tree.get(b"usr/bin/python3")
    named = re.fullmatch(rb"(?:.*/)?python(3\.[0-9]+)", link.node.target if link else b"")
    if named is None:
        raise _refused(stack.path, "/usr/bin/python3 does not say which Python it is")
    return named[1].decode()


def _stack(values: Mapping[str, str], texts: Mapping[bytes, bytes]) -> str:
    if cuda := _short(values.get("cuda", "")):
        return f"cuda-{cuda}"
    if not values.get("hip"):
        return "cpu"
    whole = [text.decode(errors="replace") for path, text in texts.items() if _ROCM.fullmatch(path)]
    of_wheel = values.get("__version__", "").partition("+rocm")[2]
    matches = (_RELEASE.match(text) for text in (*sorted(whole), of_wheel))
    release = next((match[0] for match in matches if match), _short(values["hip"]))
    return f"rocm-{release}"


def _short(version: str) -> str:
    return ".".join(version.split(".")[:2])


def _activation(stack: LayerStack, prefix: bytes) -> str:
    """Return the command that activates torch's environment; '' for the system's Python."""
    tree, folder = stack.tree, prefix.rstrip(b"/")
    if folder + b"/conda-meta" in tree:
        base = posixpath.dirname(posixpath.dirname(folder))
        if folder + b"/bin/activate" not in tree and base + b"/bin/activate" in tree:
            return f"source /{_decode_path(base)}/bin/activate /{_decode_path(folder)}"
    if folder + b"/bin/activate" in tree:
        return f"source /{_decode_path(folder)}/bin/activate"
    return "true"


def _date(sif: Path, labels: bytes) -> str:
    """Return the build date: from the label, else from the header, else from the file."""
    try:
        text = str(json.loads(labels)["org.label-schema.build-date"])
    except (ValueError, LookupError, TypeError):
        text = ""
    for form, part in (("%Y-%m-%d", text[:10]), (_BUILT, "_".join(text.split("_")[:4]))):
        try:
            return datetime.strptime(part, form).replace(tzinfo=UTC).strftime("%Y%m%d")
        except ValueError:
            continue
    created = sif_image.read(sif).header.created
    seconds = created if created not in {0, NO_TIME} else sif.stat().st_mtime
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y%m%d")


def _decode_path(path: bytes) -> str:
    return path.decode(errors="replace")


def _refused(sif: Path, why: str) -> UsageError:
    return UsageError.of(f"cannot be installed as PyTorch: {why}", where=str(sif), fix=_FIX)
