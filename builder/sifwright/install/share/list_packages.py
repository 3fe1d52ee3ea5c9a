"""List the Python packages that are seen in the container; run by the image's Python.

A package of one's own comes before one of the same name of the image, which is then not seen.
"""

import argparse
import glob
import json
import os
import re
import sys
from importlib import metadata

OWN = "/user-software/venv/pytorch"


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def of_folders(folders: "list[str]", origin: str) -> "dict[str, dict[str, str]]":
    """Return the distributions of pip and conda; of one name, the first."""
    by_name = {}  # type: dict[str, dict[str, str]]
    for item in metadata.distributions(path=folders):
        name = item.metadata["Name"]
        if not name:
            continue  # a folder that an interrupted installation left
        installer = (item.read_text("INSTALLER") or "pip").strip()
        entry = {"name": name, "version": item.version, "from": origin, "installer": installer}
        by_name.setdefault(canonical(name), entry)
    return by_name


def of_conda(prefix: str) -> "dict[str, dict[str, str]]":
    """Return the packages of conda, Python or not."""
    by_name = {}
    for path in glob.glob(os.path.join(glob.escape(prefix), "conda-meta", "*.json")):
        with open(path, encoding="utf-8") as file:
            item = json.load(file)
        name, version = item["name"], item["version"]
        by_name[canonical(name)] = {
            "name": name,
            "version": version,
            "from": "image",
            "installer": "conda",
        }
    return by_name


def packages() -> "list[dict[str, str]]":
    own = glob.glob(os.path.join(OWN, "lib", "python*", "site-packages"))
    own_packages = of_folders(own, "own")
    image = of_conda(sys.prefix)
    image.update(of_folders([path for path in sys.path if not path.startswith(OWN)], "image"))
    for name, entry in own_packages.items():
        if name in image:
            entry["instead of"] = image[name]["version"]
    image.update(own_packages)
    return [image[name] for name in sorted(image)]


def line(entry: "dict[str, str]") -> "tuple[str, str, str]":
    origin = entry["from"]
    if entry["installer"] == "conda":
        origin += " (conda)"
    if "instead of" in entry:
        origin += " (image: {})".format(entry["instead of"])
    return entry["name"], entry["version"], origin


def main() -> None:
    parser = argparse.ArgumentParser(prog="list-packages", allow_abbrev=False)
    parser.add_argument("--json", action="store_true")
    listed = packages()
    if parser.parse_args().json:
        print(json.dumps(listed, indent=1))
        return
    lines = [("NAME", "VERSION", "FROM"), *map(line, listed)]
    widths = [max(len(row[column]) for row in lines) for column in range(2)]
    for name, version, origin in lines:
        print("{:{}}  {:{}}  {}".format(name, widths[0], version, widths[1], origin))


if __name__ == "__main__":
    main()
