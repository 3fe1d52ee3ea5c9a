"""Settings of the building machine reach a build; their passwords are in nothing that it makes."""

from __future__ import annotations

import base64
import json
from pathlib import Path

import pytest

from tests.conftest import run, sifwright
from tests.system.apptainer.toys import Toy, succeeded
from tests.system.apptainer.trees import extracted

# One for each place, so that a hit says which one it was.
PLACES = (
    *("pip-config", "pip-variable", "pip-extra", "netrc", "docker-config", "git-header"),
    *("git-credentials", "http-proxy", "all-proxy", "mirror", "conda-token", "apt-proxy"),
    *("token-variable", "secret-file", "secret-variable", "no-proxy", "find-links", "ca-file"),
)
CANARIES = {kind: f"canary{number:02}{kind.replace('-', '')}" for number, kind in enumerate(PLACES)}


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a home and an environment with a canary in every place."""
    home, of = tmp_path / "home", CANARIES
    (home / ".docker").mkdir(parents=True)
    texts = {
        "pip.conf": f"[global]\nindex-url = http://u:{of['pip-config']}@127.0.0.1:9/simple\n",
        ".netrc": f"machine 127.0.0.1 login u password {of['netrc']}\n",
        ".gitconfig": f"[http]\n\textraHeader = Authorization: Basic {of['git-header']}\n",
        ".git-credentials": f"https://u:{of['git-credentials']}@127.0.0.1\n",
        "apt.conf": f'Acquire::http::Proxy "http://u:{of["apt-proxy"]}@127.0.0.1:9";\n',
        "secret": of["secret-file"],
        "ca.crt": f"# {of['ca-file']}\n",
        "page.html": of["find-links"],
    }
    for name, text in texts.items():
        (home / name).write_text(text)
        (home / name).chmod(0o600)
    login = base64.b64encode(f"u:{of['docker-config']}".encode()).decode()
    auths = {"auths": {"127.0.0.1:9": {"auth": login}, "x": {"identitytoken": of["docker-config"]}}}
    (home / ".docker/config.json").write_text(json.dumps(auths))
    conda = f"https://127.0.0.1:9/t/{of['conda-token']}/lab"
    rules = {
        "archives": {"https://a.example/x": f"http://u:{of['mirror']}@127.0.0.1:9/x"},
        "conda": {"https://c.example/lab": conda},
    }
    (home / "mirrors.yaml").write_text(json.dumps(rules))
    variables = {
        "HOME": str(home),
        "PIP_CONFIG_FILE": str(home / "pip.conf"),
        "PIP_INDEX_URL": f"http://u:{of['pip-variable']}@127.0.0.2:9/simple",
        "PIP_FIND_LINKS": str(home),
        "SSL_CERT_FILE": str(home / "ca.crt"),
        "PIP_EXTRA_INDEX_URL": f"http://u:{of['pip-extra']}@127.0.0.1:9/simple",
        "http_proxy": f"http://u:{of['http-proxy']}@127.0.0.1:9",
        "https_proxy": f"http://u:{of['http-proxy']}@127.0.0.1:9",
        "no_proxy": f"{of['no-proxy']}.example",
        "ALL_PROXY": f"http://u:{of['all-proxy']}@127.0.0.1:9",
        "APT_CONFIG": str(home / "apt.conf"),
        "GITHUB_TOKEN": of["token-variable"],
        "OUR_TOKEN": of["secret-variable"],
        "SIFWRIGHT_MIRRORS": str(home / "mirrors.yaml"),
        "DOCKER_CONFIG": str(home / ".docker"),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return home


# The step must see them, or the test would find nothing after any build.
_INSTALL = """
[[ $http_proxy == *httpproxy* && $https_proxy == "$http_proxy" && $no_proxy == *noproxy.example ]]
[[ $PIP_INDEX_URL == http://127.0.0.2:9/simple && $PIP_FIND_LINKS == file:///mnt/* ]]
grep -qx 'machine 127.0.0.2 login u password .*pipvariable' "$NETRC"
grep -q findlinks "${PIP_FIND_LINKS#file://}/page.html"
for file in "$SSL_CERT_FILE" "$PIP_CERT" "$REQUESTS_CA_BUNDLE"; do grep -q cafile "$file"; done
grep -q 'Acquire::http::Proxy "http://u:.*aptproxy@127.0.0.1:9"' "$APT_CONFIG"
[[ $(stat -c %a "$SIFWRIGHT_BUILD/machine/environment") == 600 ]]
[[ $(<"$SIFWRIGHT_BUILD/secrets/file") == *secretfile* ]]
[[ $(<"$SIFWRIGHT_BUILD/secrets/variable") == *secretvariable* ]]
echo done >/used
"""
_LATER = "[[ ! -e $SIFWRIGHT_BUILD/secrets && ! -e $SIFWRIGHT_BUILD/machine/secrets ]]\n"


def test_no_password_is_in_anything_that_a_build_makes(
    tiny: Toy, planted: Path, tmp_path: Path
) -> None:
    tiny.layer("user", _INSTALL, header={"secrets": ["file", "variable"]}, test="cat /used\n")
    tiny.layer("later", _LATER)
    tiny.image("user", "later")
    given = ["--secret", f"id=file,src={planted}/secret", "--secret", "id=variable,env=OUR_TOKEN"]
    told = [tiny.build(*given, "--verbose"), tiny.build(*given, "--force", "--layout", "layered")]
    project = ["--project", str(tiny.folder)]
    told.append(sifwright(*project, "inspect", str(tiny.sif), "--json"))
    told.append(sifwright(*project, "report", "local", "toy", cwd=tiny.folder))
    told.append(sifwright(*project, "lock", "local", "toy", *given, cwd=tiny.folder))
    (tiny.folder / "told").write_text("".join(done.stdout + done.stderr for done in told))
    assert [done.returncode for done in told] == [0] * 5, (tiny.folder / "told").read_text()
    for number, packed in enumerate([*tmp_path.rglob("*.sqfs"), *extracted(tiny.sif, tiny.folder)]):
        succeeded(run(["unsquashfs", "-q", "-d", tmp_path / f"unpacked-{number}", packed]))
    files = [path for path in tmp_path.rglob("*") if path.is_file() and not path.is_symlink()]
    hits = [
        (str(path), name)
        for path in files
        if planted not in path.parents
        for name, canary in CANARIES.items()
        if canary.encode() in path.read_bytes()
    ]
    assert any(path.name == "used" for path in files), "nothing of the image was looked at"
    result = {"sbom.cdx.json", "provenance.json", "record.json", "report.html"}
    result |= {"pylock.local-toy.toml"}
    assert result <= {path.name for path in files}
    assert hits == []


def test_a_secret_that_a_layer_needs_is_asked_for(tiny: Toy) -> None:
    tiny.layer("user", "true\n", header={"secrets": ["token"]})
    tiny.image("user")
    done = tiny.build()
    assert done.returncode == 2
    assert "layer 'user' needs the secret 'token'" in done.stderr
    assert "--secret id=token,src=FILE" in done.stderr
    done = tiny.build("--secret", "id=token,src=/nowhere")
    assert done.returncode == 2
    assert "/nowhere: No such file or directory" in done.stderr
