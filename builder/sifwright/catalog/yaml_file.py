"""Read YAML strictly: no duplicate keys, aliases or tags, and the line of every value kept.

Each event of PyYAML is checked before anything is made of it. So a hostile file can neither
overflow the stack nor blow up through aliases. The text of a scalar (``2.10``, which YAML reads as
the number 2.1) is still there for the message.
"""

from sifwright.catalog.yaml_document import Document, YamlProblem

MAX_BYTES = 1 << 18


def parse_yaml(data: bytes, file: str) -> Document:
    """Read one YAML document; raises `YamlProblem` with file and line."""
    # 10 ms; most files are in the cache of definitions
    import yaml  # noqa: PLC0415

    from sifwright.catalog.yaml_reader import Reader  # noqa: PLC0415

    if len(data) > MAX_BYTES:
        raise YamlProblem(file, f"larger than {MAX_BYTES} bytes", "Split the file.")
    try:
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        reader = Reader(file, yaml.parse(data.decode(), loader))
        value = reader.document()
    except UnicodeDecodeError as error:
        message = f"not UTF-8 text (byte {error.start})"
        raise YamlProblem(file, message, "Save as UTF-8.") from None
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}:{mark.line + 1}" if mark else file
        message = getattr(error, "problem", None) or str(error).splitlines()[0]
        fix = "Check the indentation and quotes."
        raise YamlProblem(where, f"not valid YAML: {message}", fix) from None
    return Document(data=value, lines=reader.lines, texts=reader.texts)
