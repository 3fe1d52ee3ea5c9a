"""Make the user's virtual environment on top of the image's; run in the container, by its Python.

    make_environment.py /user-software/venv/pytorch

The image's packages are seen, whether its Python is of a virtual environment, of conda or of the
system. A virtual environment of a virtual environment does not see them by itself. Packages of the
home directory are not seen.
"""

import importlib.util
import os
import shutil
import subprocess
import sys
from importlib import metadata

# Lines of a .pth file; with what lies in the image's folders, their own .pth files are heeded.
SEEN = "import site; site.addsitedir({folder!r})\n"
GUARD = """\
import sys; any("pip" in word for word in (getattr(sys, "orig_argv", None) \
or open("/proc/self/cmdline", encoding="utf-8", errors="replace").read().split("\\0"))[1:4]) \
and __import__("sifwright_pip")
"""
# PIP_CONSTRAINT of an image comes before this: it names the same torch.
CONF = """\
[install]
user = no
constraint = {place}/constraints.txt
"""
PIP = """\
#!{place}/bin/python
import sys
from pip._internal.cli.main import main
sys.exit(main())
"""


def fail(message: str) -> None:
    sys.exit("pytorch-pip: {}".format(message))


def image_folders() -> "list[str]":
    """Return the folders with the image's packages."""
    ends = ("site-packages", "dist-packages")
    return [path for path in sys.path if os.path.basename(path) in ends and os.path.isdir(path)]


def make(folder: str, base: str) -> None:
    """Make an environment for the very Python file, with the version in its name."""
    has_pip = importlib.util.find_spec("pip") is not None
    options = ["--without-pip"] if has_pip else []
    done = subprocess.run([base, "-m", "venv", "--symlinks", *options, folder], check=False)
    if done.returncode:
        fail("{} -m venv failed: the image's Python needs the module venv".format(base))
    if has_pip:
        write_pip(folder)


def write_pip(folder: str) -> None:
    for name in ("pip", "pip3", "pip{}.{}".format(*sys.version_info[:2])):
        path = os.path.join(folder, "bin", name)
        write(path, PIP.format(place=folder))
        os.chmod(path, os.stat(path).st_mode | (os.stat(folder).st_mode & 0o111))


def link_python(folder: str, base: str) -> None:
    """Let every name of Python there end at the file that the image's `python` is."""
    name = "python{}.{}".format(*sys.version_info[:2])
    for link in {"python", "python3", name}:
        path = os.path.join(folder, "bin", link)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(base if link == name else name, path)


def write(path: str, text: str) -> None:
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def site_packages(folder: str) -> str:
    name = "python{}.{}".format(*sys.version_info[:2])
    return os.path.join(folder, "lib", name, "site-packages")


def heed_umask(environment: str) -> None:
    """Apply the umask to files that Python's module venv copied with their modes."""
    umask = os.umask(0o077)
    os.umask(umask)
    for folder, _, files in os.walk(environment):
        for path in (os.path.join(folder, name) for name in files):
            if not os.path.islink(path):
                os.chmod(path, os.stat(path).st_mode & ~umask & 0o777)


def torch_version() -> str:
    try:
        return metadata.version("torch")
    except metadata.PackageNotFoundError:
        return ""


def main(environment: str) -> None:
    base = os.path.realpath(sys.executable)
    folders = image_folders()
    make(environment, base)
    link_python(environment, base)
    target = site_packages(environment)
    guard = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sifwright_pip.py")
    shutil.copyfile(guard, os.path.join(target, "sifwright_pip.py"))
    seen = "".join(SEEN.format(folder=folder) for folder in folders)
    write(os.path.join(target, "sifwright.pth"), seen + GUARD)
    version = torch_version()
    write(
        os.path.join(environment, "constraints.txt"),
        "torch=={}\n".format(version) if version else "",
    )
    write(os.path.join(environment, "pip.conf"), CONF.format(place=environment))
    heed_umask(environment)


if __name__ == "__main__":
    main(sys.argv[1])
