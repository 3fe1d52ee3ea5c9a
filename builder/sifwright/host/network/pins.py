"""Every source of every layer and its pin: listed, looked up, checked."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from sifwright.catalog import pins_file
from sifwright.catalog.model import Catalog, Layer, Source
from sifwright.catalog.schema import did_you_mean
from sifwright.errors import CatalogError, MachineError, Problem, UsageError
from sifwright.host.network import upstream
from sifwright.plan.resolve import get_or_suggest
from sifwright.plan.sources import fill
from sifwright.system import files

_AT_ONCE = 8
_CHANGED = {
    "moved": "the tag {ref} has moved",
    "gone": "the commit is no longer in the repository",
    "changed": "the archive is another one now",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class PinStatus:
    """One version of a source. `found` is its pin there now, `state` the outcome."""

    layer: str
    source: str
    version: str
    url: str
    ref: str
    pin: str
    state: str
    found: str = ""
    reason: str = ""


def entries(catalog: Catalog, words: Sequence[str] = ()) -> list[PinStatus]:
    return [_entry(*pin) for pin in _chosen(catalog, words)]


def check(catalog: Catalog, words: Sequence[str] = ()) -> list[PinStatus]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        return list(pool.map(lambda pin: _checked(*pin), _chosen(catalog, words)))


def errors(entries: Iterable[PinStatus]) -> Iterator[CatalogError | MachineError]:
    """Yield the pins that no longer hold, else the sources that did not answer."""
    listed = list(entries)
    if changed := [entry for entry in listed if entry.state in _CHANGED]:
        yield CatalogError(*map(_changed_problem, changed))
    if silent := [entry for entry in listed if entry.state == "no answer"]:
        yield MachineError(*map(_silent_problem, silent))


def add(catalog: Catalog, defs: Path, words: Sequence[str]) -> PinStatus:
    """Look a version up and write its pin into the layer's pins.yaml.

    Raises `UsageError` for words that do not lead to one source, and `MachineError` if it cannot be
    looked up. Raises `CatalogError` if it has another pin already, because a person reviewed it.
    """
    layer, source, version = _to_add(catalog, words)
    path = defs / "layers" / layer.name / "pins.yaml"
    if _entry(layer, source, version).pin:
        for error in errors([_checked(layer, source, version)]):
            raise error
        return _entry(layer, source, version)
    try:
        digest = upstream.digest(source, version)
    except upstream.LookupFailedError as error:
        entry = replace(_entry(layer, source, version), reason=str(error))
        raise MachineError(_silent_problem(entry)) from None
    shown = str(path.relative_to(defs.parent))
    text = pins_file.with_pin(path.read_text(encoding="utf-8"), source, version, digest, shown)
    files.write(path, text.encode(), mode=path.stat().st_mode & 0o777)
    return replace(_entry(layer, source, version), pin=digest, state="checked", reason="")


def _chosen(catalog: Catalog, words: Sequence[str]) -> Iterator[tuple[Layer, Source, str]]:
    layers = [_layer(catalog, words[0])] if words else list(catalog.layers.values())
    for layer in layers:
        for source in layer.sources:
            if len(words) > 1 and source is not _source(layer, words[1]):
                continue
            for version in words[2:3] or source.versions:
                if version not in source.versions:
                    fix = did_you_mean(version, source.versions)
                    message = f"source '{source.name}' has no version {version!r}"
                    raise UsageError.of(message, fix=fix)
                yield layer, source, version


def _layer(catalog: Catalog, name: str) -> Layer:
    with_sources = {layer.name: layer for layer in catalog.layers.values() if layer.sources}
    return get_or_suggest(with_sources, name, "layer with sources")


def _source(layer: Layer, name: str) -> Source:
    return get_or_suggest({source.name: source for source in layer.sources}, name, "source")


def _to_add(catalog: Catalog, words: Sequence[str]) -> tuple[Layer, Source, str]:
    """Resolve LAYER SOURCE VERSION; SOURCE may be left out if there is only one."""
    if len(words) not in {2, 3}:
        fix = "Write: sifwright pins LAYER [SOURCE] VERSION --add"
        raise UsageError.of("--add needs a layer and a version", fix=fix)
    layer = _layer(catalog, words[0])
    if len(words) == 3:  # noqa: PLR2004  # layer, source, version
        return layer, _source(layer, words[1]), words[2]
    if len(layer.sources) > 1:
        fix = f"Name one of: {', '.join(source.name for source in layer.sources)}."
        raise UsageError.of(f"layer '{layer.name}' has several sources", fix=fix)
    return layer, layer.sources[0], words[1]


def _entry(layer: Layer, source: Source, version: str) -> PinStatus:
    pin = source.versions.get(version)
    return PinStatus(
        layer=layer.name,
        source=source.name,
        version=version,
        url=f"pip: {source.url}" if source.kind == "pip" else fill(source.url, version),
        ref=fill(source.ref, version),
        pin=pin.digest if pin else "",
        state="checked" if pin and pin.digest else "unchecked",
        reason=pin.unchecked if pin else "",
    )


def _checked(layer: Layer, source: Source, version: str) -> PinStatus:
    entry = _entry(layer, source, version)
    try:
        if source.branch and entry.pin:
            # The branch may move on, as long as the commit can be had.
            return replace(entry, state="good" if upstream.has_commit(source, version) else "gone")
        actual = upstream.digest(source, version)
    except upstream.LookupFailedError as error:
        return replace(entry, state="no answer", reason=str(error))
    changed = "moved" if source.kind == "git" else "changed"
    state = "good" if entry.pin == actual else changed if entry.pin else "can be pinned"
    return replace(entry, found=actual, state=state)


def _changed_problem(entry: PinStatus) -> Problem:
    message = _CHANGED[entry.state].format(ref=entry.ref)
    actual = f"\n    found:  {entry.found}" if entry.found else ""
    return Problem(
        where=f"{entry.layer} {entry.source} {entry.version}",
        what=f"{message}\n    from:   {entry.url}\n    pinned: {entry.pin}{actual}",
        fix="Find out why before you change the pin by hand; builds take what was pinned, or fail.",
    )


def _silent_problem(entry: PinStatus) -> Problem:
    return Problem(
        where=f"{entry.layer} {entry.source} {entry.version}",
        what=f"cannot be looked up: {entry.reason}",
        fix="Check the version and the network, or name a mirror in the file of SIFWRIGHT_MIRRORS.",
    )
