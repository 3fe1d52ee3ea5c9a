"""The tags of wheels that run on an image, which is another machine than this one."""

from collections.abc import Iterator

from packaging.tags import Tag, compatible_tags, cpython_tags

# The oldest of the images' C libraries, as in manylinux_2_28: Red Hat 8's.
GLIBC = 28
# Names by PEP 599, 571 and 513; other processors have the first one only.
_NAMED = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
# A version after any release of glibc, so that no image is newer.
_LAST_GLIBC = 60


def oldest(python: str, processor: str) -> Iterator[Tag]:
    """Yield the tags of wheels that run on every image, the best first."""
    return _tags(python, list(platforms(processor)))


def possible(python: str, processor: str) -> Iterator[Tag]:
    """Yield the tags of wheels that run on some image; later C libraries come last."""
    later = [f"manylinux_2_{minor}_{processor}" for minor in range(GLIBC + 1, _LAST_GLIBC)]
    return _tags(python, [*platforms(processor), *later])


def _tags(python: str, platforms: list[str]) -> Iterator[Tag]:
    major, minor = (int(number) for number in python.split(".")[:2])
    interpreter = f"cp{major}{minor}"
    yield from cpython_tags((major, minor), abis=[interpreter], platforms=platforms)
    yield from compatible_tags((major, minor), interpreter=interpreter, platforms=platforms)


def platforms(processor: str) -> Iterator[str]:
    """Yield the platforms of wheels that run on every image, the most specific first."""
    oldest_minor = min(_NAMED) if processor == "x86_64" else max(_NAMED)
    for minor in range(GLIBC, oldest_minor - 1, -1):
        yield f"manylinux_2_{minor}_{processor}"
        if minor in _NAMED:
            yield f"{_NAMED[minor]}_{processor}"
    yield f"linux_{processor}"
