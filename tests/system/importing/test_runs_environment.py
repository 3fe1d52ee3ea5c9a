"""RUN sees what Docker gives it, and what the machine must hand over; nothing of our steps."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from sifwright.render.build_files import package_text
from tests.conftest import run

if TYPE_CHECKING:
    from pathlib import Path

    from tests.system.importing.building import Workshop

# Variables that render/templates/step.sh and the engine set for a step of ours.
STEP = dict.fromkeys(
    [
        *("TMPDIR", "DEBIAN_FRONTEND", "LD_LIBRARY_PATH", "LANG", "LC_ALL", "PIP_NO_CACHE_DIR"),
        *("PIP_NO_INPUT", "GIT_TERMINAL_PROMPT", "GIT_CONFIG_SYSTEM", "OPT_A", "APPTAINER_NAME"),
        *("SIFWRIGHT_LAYER", "PROMPT_COMMAND"),
    ],
    "x",
)


def read_environment(tree: Path, machine: dict[str, str], **more: str) -> dict[str, str]:
    """Return the environment of a RUN in a step with these settings, in the test's folder."""
    build, layer = tree / "build", tree / "layer"
    for folder in (build / "machine", build / "kept", build / "tmp", layer):
        folder.mkdir(parents=True, exist_ok=True)
    (build / "base-environment").write_bytes(b"PATH=/usr/bin:/bin\0OF_BASE=1\0")
    for name, text in machine.items():
        (build / "machine" / name).write_text(text)
    (layer / "recipe.sh").write_text(package_text("recipe_import/templates/recipe.sh"))
    script = ". ./recipe.sh; as_recipe; borrowed=(); variable A set 1; run_words / /usr/bin/env -0"
    given = {**STEP, "SIFWRIGHT_BUILD": str(build), "PATH": os.environ["PATH"], "HOME": str(tree)}
    source = f'[[ ! -f "{build}/machine/environment" ]] || . "{build}/machine/environment"; '
    done = run(["bash", "-euo", "pipefail", "-c", source + script], cwd=layer, env=given | more)
    assert done.returncode == 0, done.stderr
    pairs = (line.partition("=") for line in done.stdout.split("\0") if line)
    return {name: value for name, _, value in pairs}


def test_nothing_of_a_step(tmp_path: Path) -> None:
    expected = {"PATH": "/usr/bin:/bin", "HOME": "/root", "OF_BASE": "1", "A": "1"}
    assert read_environment(tmp_path, {}) == expected


def test_variables_that_the_machine_hands_over(tmp_path: Path) -> None:
    settings = "export PIP_INDEX_URL='http://x/a b'\nexport https_proxy=p\nexport A=machine\n"
    machine = {"environment": settings, "ca.crt": "x"}
    values = read_environment(
        tmp_path, machine, http_proxy="q", SSL_CERT_FILE="/ca", APT_CONFIG="/apt.conf"
    )
    assert values["PIP_INDEX_URL"] == "http://x/a b"
    assert (values["https_proxy"], values["http_proxy"]) == ("p", "q")
    assert (values["SSL_CERT_FILE"], values["APT_CONFIG"]) == ("/ca", "/apt.conf")
    assert values["A"] == "1", "the recipe's ENV is stronger than the machine"


def test_the_logins_of_indexes_are_handed_over(tmp_path: Path) -> None:
    assert "NETRC" not in read_environment(tmp_path, {"netrc": ""}, NETRC="/home/me/.netrc")
    values = read_environment(tmp_path, {"netrc": "machine x login u password p\n"})
    assert values["NETRC"] == str(tmp_path / "build/machine/netrc")


def test_git_reads_mirrors_and_writes_the_systems_own_file(tmp_path: Path) -> None:
    mirrors = '[url "file:///mirror/"]\n\tinsteadOf = "https://example.org/"\n'
    values = read_environment(tmp_path, {"gitconfig": mirrors})
    env = {**values, "PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    words = ["git", "config", "--get", "url.file:///mirror/.insteadof"]
    assert run(words, env=env, cwd=tmp_path).stdout == "https://example.org/\n"
    assert "GIT_CONFIG_SYSTEM" not in values


@pytest.mark.build
def test_pips_cache_is_there_while_a_step_runs(workshop: Workshop, tmp_path: Path) -> None:
    """Keep it so that a step can purge it; other caches may be the weights of a model, and stay."""
    text = "RUN mkdir -p ~/.cache/pip/x ~/.cache/other && ls -d ~/.cache/pip/x >/opt/seen"
    ours = workshop.ours(workshop.write("caches", f"FROM tiny:1\n{text}\n", tmp_path))
    assert {"root/.cache/other", "opt/seen"} <= ours.tree.keys()
    assert "root/.cache/pip" not in ours.tree
