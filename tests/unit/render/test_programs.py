"""apt-install, build-jobs and cuda-archs, as install.sh calls them."""

import os
import subprocess
from importlib import resources
from pathlib import Path

import pytest

from tests.conftest import run
from tests.unit.conftest import program

PROGRAMS = resources.files("sifwright") / "render" / "templates" / "bin"
# Says how it was called and shows the sources it would read.
APT_GET = """#!/bin/bash
echo "apt-get $*" >>"$SIFWRIGHT_BUILD/called"
for word in "$@"; do
  case $word in
    Dir::Etc::sourcelist=*) cat "${word#*=}" >"$SIFWRIGHT_BUILD/list" 2>/dev/null || true ;;
    Dir::Etc::sourceparts=*) cat "${word#*=}"/* >"$SIFWRIGHT_BUILD/parts" 2>/dev/null || true ;;
  esac
done
[[ $* != *missing-package* ]]
"""
RULES = """\
http://archive.ubuntu.com/ubuntu https://mirror.example/ubuntu
http://archive.example/debian file:///mnt/0
"""
LIST = """\
# deb http://archive.ubuntu.com/ubuntu noble main
deb [arch=amd64  signed-by=/usr/share/keyrings/x.gpg] http://archive.ubuntu.com/ubuntu/ noble main
deb http://archive.ubuntu.com/ubuntu-ports noble main
deb-src\thttp://archive.example/debian\tbookworm main"""
DEB822 = """\
Types: deb
URIs: http://archive.ubuntu.com/ubuntu https://developer.example/cuda/
Suites: noble
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mQENBF
"""


@pytest.fixture
def build(tmp_path: Path) -> Path:
    """Make a stand-in for /.sifwright, with an apt that is configured below it."""
    (tmp_path / "machine").mkdir()
    (tmp_path / "machine" / "mirrors").write_text(RULES)
    for name in ("sources.list.d", "apt.conf.d"):
        (tmp_path / "etc" / name).mkdir(parents=True)
    (tmp_path / "apt.conf").write_text(f'Dir::Etc "{tmp_path}/etc";\n')
    (tmp_path / "fake").mkdir()
    (tmp_path / "fake" / "apt-get").write_text(APT_GET)
    (tmp_path / "fake" / "apt-get").chmod(0o755)
    # It would remove lists and archives of this machine.
    (tmp_path / "fake" / "rm").write_text('#!/bin/sh\necho "rm $*" >>"$SIFWRIGHT_BUILD/called"\n')
    (tmp_path / "fake" / "rm").chmod(0o755)
    return tmp_path


def _run(build: Path, *command: str, **env: str) -> subprocess.CompletedProcess[str]:
    if command[0] == "apt-install":
        program("apt-config")
    settings = {
        "PATH": f"{build}/fake:{PROGRAMS}:/usr/bin:/bin",
        "SIFWRIGHT_BUILD": str(build),
        "SIFWRIGHT_LAYER": "toy",
        "APT_CONFIG": str(build / "apt.conf"),
    }
    return run(command, env=settings | env)


def test_apt_install_reads_every_source_from_its_mirror(build: Path) -> None:
    (build / "etc" / "sources.list").write_text(LIST)
    (build / "etc" / "sources.list.d" / "a.sources").write_text(DEB822)
    (build / "etc" / "sources.list.d" / "b.list").write_text(
        "deb http://archive.example/debian x y\n"
    )
    (build / "etc" / "sources.list.d" / "b.list.save").write_text("deb http://old.example x y\n")
    done = _run(build, "apt-install", "git", "curl")
    assert (done.returncode, done.stderr) == (0, "")
    expected = LIST
    for old, new in (line.split() for line in RULES.splitlines()):
        for end in ("/ ", " ", "\t"):
            expected = expected.replace(f"{old}{end}", f"{new}{end}")
    assert (build / "list").read_text() == f"{expected}\n"
    parts = (build / "parts").read_text()
    assert DEB822.replace("http://archive.ubuntu.com", "https://mirror.example") in parts
    assert "deb file:///mnt/0 x y\n" in parts
    assert "old.example" not in parts


CUDA = "https://developer.download.nvidia.com/compute/cuda/repos/ubuntu2404/x86_64"
VENDORS_LIST = f"""\
deb [signed-by=/x.gpg] {CUDA}/ /
deb [arch=amd64] https://repo.radeon.com/rocm/apt/7.1.1 noble main
deb http://archive.ubuntu.com/ubuntu noble main
deb https://repo.radeon.com.example/x noble main
"""
VENDORS_DEB822 = f"""\
# a comment
Types: deb
URIs: http://archive.ubuntu.com/ubuntu
Suites: noble

Types: deb
URIs: {CUDA}
Suites: /
Signed-By:
 -----BEGIN
 .
 gone

Types: deb
URIs: https://repo.radeon.com/graphics
Suites: noble
Components: gone

Types: deb
URIs: https://repo.radeon.com/x http://archive.ubuntu.com/ubuntu
Suites: stays
"""


def _vendors(build: Path, rules: str) -> str:
    (build / "machine" / "mirrors").write_text(rules)
    (build / "etc" / "sources.list").write_text(VENDORS_LIST)
    (build / "etc" / "sources.list.d" / "a.sources").write_text(VENDORS_DEB822)
    (build / "etc" / "sources.list.d" / "b.list").write_text(VENDORS_LIST)
    assert _run(build, "apt-install", "git").returncode == 0
    return (build / "list").read_text() + (build / "parts").read_text()


def test_apt_install_leaves_the_vendors_own_archives_out(build: Path) -> None:
    values = _vendors(build, "http://archive.ubuntu.com/ubuntu https://mirror.example/ubuntu\n")
    for word in ("nvidia.com", "repo.radeon.com/", "gone", "left-out"):
        assert word not in values
    kept = "deb https://mirror.example/ubuntu noble main\ndeb https://repo.radeon.com.example/x"
    assert values.count(kept) == 2
    stanza = "Types: deb\nURIs: https://mirror.example/ubuntu\nSuites:"
    assert f"# a comment\n{stanza} noble\n\n{stanza} stays\n" in values


def test_apt_install_asks_the_vendors_mirror(build: Path) -> None:
    """Take vendors' names in a mirror's path for no vendor's archive."""
    mirror = "https://mirror.example"
    values = _vendors(
        build,
        f"https://developer.download.nvidia.com {mirror}/https://developer.download.nvidia.com\n"
        "https://repo.radeon.com https://repo.radeon.com/other\n",
    )
    assert values.count(f"{mirror}/{CUDA}") == 3
    assert values.count("https://repo.radeon.com/other/") == 4
    assert "left-out" not in values


def test_apt_install_updates_installs_and_cleans(build: Path) -> None:
    assert _run(build, "apt-install", "git", "curl").returncode == 0
    calls = (build / "called").read_text().splitlines()
    update, install = (line for line in calls if "Dir::Etc" in line)
    assert update.endswith(" update")
    assert install.endswith(" install -y --no-install-recommends git curl")
    assert calls[-2] == "apt-get clean"
    assert calls[-1].startswith("rm -rf /var/lib/apt/lists/")


RELEASE = "Origin: Debian\nDate: Mon, 23 Nov 2026 11:22:37 UTC\nSHA256:\n 1 2 main/x\n"


def test_apt_install_reports_the_dates_of_its_archives(build: Path) -> None:
    text = (PROGRAMS / "apt-install").read_text().replace(" /var/", f" {build}/var/")
    (build / "fake/apt-install").write_text(text)
    (build / "fake/apt-install").chmod(0o755)
    lists = build / "var/lib/apt/lists"
    lists.mkdir(parents=True)
    signed = f"-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA256\n\n{RELEASE}"
    (lists / "a.example_debian_dists_bookworm-security_InRelease").write_text(signed)
    (lists / "b.example_x_dists_noble_Release").write_text(RELEASE.replace("Mon, 23", "Tue, 24"))
    (lists / "c.example_x_dists_none_Release").write_text("Origin: none\n")
    done = _run(build, "apt-install", "git")
    assert done.stdout.splitlines() == [
        "sifwright: archive toy bookworm-security 2026-11-23T11:22:37Z",
        "sifwright: archive toy noble 2026-11-24T11:22:37Z",
    ], done.stderr


def test_apt_install_fails_with_apt(build: Path) -> None:
    assert _run(build, "apt-install", "missing-package").returncode == 1
    assert _run(build, "apt-install").returncode == 2


DNF = """#!/bin/bash
echo "dnf $*" >"$SIFWRIGHT_BUILD/called"
cat "$SIFWRIGHT_BUILD"/etc/yum.repos.d/*.repo >"$SIFWRIGHT_BUILD/list"
cache=$SIFWRIGHT_BUILD/var/cache/dnf/appstream-0123456789abcdef/repodata
mkdir -p "$cache"
printf '<timestamp>%s</timestamp>\\n' 1700000000 1700000001 >"$cache/repomd.xml"
"""
REPOSITORIES = """\
[appstream]
mirrorlist=https://lists.example/?repo=appstream-$releasever
#baseurl=http://archive.example/debian/$releasever/appstream/
enabled=1
[other]
metalink=https://lists.example/other
enabled=1
[cuda]
baseurl=https://developer.download.nvidia.com/rhel9
enabled = 1
"""
REDIRECTED = """\
[appstream]
baseurl=file:///mnt/0/$releasever/appstream/
enabled=1
[other]
metalink=https://lists.example/other
enabled=1
[cuda]
baseurl=https://developer.download.nvidia.com/rhel9
enabled=0
"""


def test_rpm_upgrade_by_mirrors(build: Path) -> None:
    """Restore the image's own repositories afterwards, and record their dates."""
    text = (PROGRAMS / "rpm-upgrade").read_text()
    for folder in ("/etc/", "/var/"):
        text = text.replace(f" {folder}", f" {build}{folder}")
    repositories = build / "etc" / "yum.repos.d" / "base.repo"
    repositories.parent.mkdir()
    repositories.write_text(REPOSITORIES)
    for name, script in {
        "dnf": DNF,
        "rpm-upgrade": text,
        "rm": '#!/bin/sh\nexec /bin/rm "$@"\n',
    }.items():
        (build / "fake" / name).write_text(script)
        (build / "fake" / name).chmod(0o755)
    done = _run(build, "rpm-upgrade")
    reported = "sifwright: archive toy appstream 2023-11-14T22:13:21Z\n"
    assert (done.returncode, done.stdout) == (0, reported), done.stderr
    assert (build / "called").read_text().startswith("dnf upgrade -q -y --refresh")
    assert (build / "list").read_text() == REDIRECTED
    assert repositories.read_text() == REPOSITORIES
    assert not list((build / "var" / "cache" / "dnf").iterdir())


def test_build_jobs_is_limited_by_cores_memory_and_the_user(build: Path) -> None:
    def jobs(*arguments: str, **env: str) -> int:
        return int(_run(build, "build-jobs", *arguments, **env).stdout)

    cores = len(os.sched_getaffinity(0))
    assert 1 <= jobs("1") <= cores
    assert jobs("9999") == 1
    assert jobs("1", MAX_JOBS="1") == 1
    assert jobs("1", MAX_JOBS="99999") <= cores
    assert jobs("1", MAX_JOBS="$(touch /pwned)") <= cores


@pytest.mark.parametrize("argument", ["0", "x", "-1", "1.5", "$(id)"])
def test_build_jobs_takes_whole_numbers(build: Path, argument: str) -> None:
    done = _run(build, "build-jobs", argument)
    assert done.returncode == 2
    assert "usage" in done.stderr


def test_build_jobs_by_memory(build: Path) -> None:
    """Run 4 jobs of 2 GiB with 8 GiB and 16 cores."""
    text = (PROGRAMS / "build-jobs").read_text()
    (build / "meminfo").write_text("MemTotal: 99999999 kB\nMemAvailable:    8388608 kB\n")
    (build / "cgroup").write_text("0::/user/job\n")
    for name, limit in (("user/job", "max"), ("user", str(5 << 30))):
        (build / "sys" / name).mkdir(parents=True, exist_ok=True)
        (build / "sys" / name / "memory.max").write_text(f"{limit}\n")
    (build / "fake" / "nproc").write_text("#!/bin/sh\necho 16\n")
    (build / "fake" / "nproc").chmod(0o755)
    for old, new in (
        ("/proc/meminfo", build / "meminfo"),
        ("/proc/self/cgroup", build / "cgroup"),
        ("/sys/fs/cgroup", build / "sys"),
    ):
        assert old in text
        text = text.replace(old, str(new))
    (build / "fake" / "build-jobs").write_text(text)
    (build / "fake" / "build-jobs").chmod(0o755)
    # The group above may take 5 GiB.
    assert _run(build, "build-jobs").stdout == "2\n"
    (build / "sys" / "user" / "memory.max").write_text("max\n")
    assert _run(build, "build-jobs").stdout == "4\n"
    assert _run(build, "build-jobs", "1").stdout == "8\n"
    assert _run(build, "build-jobs", "1", MAX_JOBS="3").stdout == "3\n"


@pytest.mark.parametrize(
    ("gpus", "archs"),
    [(["sm_80"], "8.0"), (["sm_70", "sm_90", "sm_120"], "7.0;9.0;12.0"), ([], "")],
)
def test_cuda_archs(build: Path, gpus: list[str], archs: str) -> None:
    assert _run(build, "cuda-archs", *gpus).stdout == f"{archs}\n"


@pytest.mark.parametrize("word", ["gfx90a", "sm_8", "sm_9x", ""])
def test_cuda_archs_takes_nvidias_only(build: Path, word: str) -> None:
    done = _run(build, "cuda-archs", word)
    assert (done.returncode, done.stdout) == (2, "")
    assert "usage: cuda-archs" in done.stderr
