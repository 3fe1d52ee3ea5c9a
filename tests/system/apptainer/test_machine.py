"""The building machine's settings reach the build and stay out of the image."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from tests.system.apptainer.trees import unpack

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.apptainer.toys import Toy

CANARY = "canary4711"
SEEN = """
[[ $https_proxy == "http://user:canary4711@127.0.0.1:9" ]]
[[ $no_proxy == "canary4711.example" ]]
[[ $PIP_INDEX_URL == "http://127.0.0.1:9/simple" ]]
grep -qx 'machine 127.0.0.1 login user password canary4711' "$NETRC"
[[ $PIP_FIND_LINKS == file:///mnt/* ]]
grep -q canary4711 "${PIP_FIND_LINKS#file://}/page.html"
grep -q canary4711 "$SSL_CERT_FILE" "$PIP_CERT" "$REQUESTS_CA_BUNDLE"
grep -q 'Acquire::http::Proxy "http://user:canary4711@127.0.0.1:9"' "$APT_CONFIG"
[[ $(stat -c %a "$SIFWRIGHT_BUILD/machine/environment") == 600 ]]
echo seen >/seen
"""


def _canaries(folder: Path) -> dict[str, str]:
    """Return an environment and files in which every setting holds the canary."""
    (folder / "ca.crt").write_text(f"# {CANARY}\n")
    links = folder / "links"
    links.mkdir()
    (links / "page.html").write_text(CANARY)
    (folder / "apt.conf").write_text(f'Acquire::http::Proxy "http://user:{CANARY}@127.0.0.1:9";\n')
    return {
        **os.environ,
        "https_proxy": f"http://user:{CANARY}@127.0.0.1:9",
        "no_proxy": f"{CANARY}.example",
        "PIP_INDEX_URL": f"http://user:{CANARY}@127.0.0.1:9/simple",
        "PIP_FIND_LINKS": str(links),
        "SSL_CERT_FILE": str(folder / "ca.crt"),
        "APT_CONFIG": str(folder / "apt.conf"),
    }


def test_settings_reach_the_build_and_nothing_stays(toy: Toy, engine: str, tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    settings.mkdir()
    toy.layer("sees", SEEN)
    toy.image("sees")
    built = toy.build("--verbose", env=_canaries(settings))
    assert built.returncode == 0, built.stdout + built.stderr
    tree = unpack(engine, toy.sif, tmp_path)
    assert (tree / "seen").read_text() == "seen\n"
    # The script of the layer itself holds the word; it is in the definition file in the image.
    assert _files_with(tree, CANARY) == [".singularity.d/Singularity"]
    assert (tree / ".singularity.d/Singularity").read_text().count(CANARY) == SEEN.count(CANARY)
    assert _files_with(toy.output / "recipe", CANARY) == ["layers/sees/install.sh"]
    assert CANARY not in (toy.output / "build.log").read_text()
    assert CANARY not in built.stdout
    assert not (tree / ".sifwright").exists()
    assert list((tree / "mnt").iterdir()) == []


def _files_with(tree: Path, word: str) -> list[str]:
    results = []
    for path in tree.rglob("*"):
        plain = path.is_file() and not path.is_symlink()
        if word in path.name or (plain and word.encode() in path.read_bytes()):
            results.append(str(path.relative_to(tree)))
    return sorted(results)
