"""Read YAML strictly: no duplicate keys, aliases or tags, and the line of every value kept.

Each event of PyYAML is checked before anything is made of it. So a hostile file can neither
overflow the stack nor blow up through aliases. The text of a scalar (``2.10``, which YAML reads as
the number 2.1) is still there for the message.
"""

from sifwright.catalog.yaml_document import Document
from sifwright.errors import CatalogError

MAX_BYTES = 1 << 18


def parse_yaml(data: bytes, file: str) -> Document:
    """Read one YAML document; raises `CatalogError` with file and line."""
    # 10 ms; most files are in the cache of definitions
    import yaml  # noqa: PLC0415

    from sifwright.catalog.yaml_reader import Reader  # noqa: PLC0415

    if len(data) > MAX_BYTES:
        raise CatalogError.of(f"larger than {MAX_BYTES} bytes", where=file, fix="Split the file.")
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        reader = Reader(file, yaml.parse(data.decode(), loader))
        value = reader.document()
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text (byte {error.start})"
        raise CatalogError.of(message, where=file, fix="Save as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else file
        message = getattr(error, "problem", None) or str(error).splitlines()[0]
        fix = "Check the indentation and quotes."
        raise CatalogError.of(f"not valid YAML: {message}", where=where, fix=fix) from None
    return Document(data=value, lines=reader.lines, texts=reader.texts)
