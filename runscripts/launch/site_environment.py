"""The site environment file of the image: variables of the site, each set only if unset."""

from .errors import LaunchError
from .variables import shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, List, Tuple

    from .variables import Env

DEFAULT = "/etc/sifwright/site-environment"
VARIABLE = "SIFWRIGHT_SITE_ENVIRONMENT"  # another file; empty: none
SECTIONS = ("always", "one-node", "several-nodes")


def apply(env: "Env", *, one_node: bool) -> None:
    """Add what the site's file says for this launch; raises `LaunchError` if it cannot be read."""
    wanted = ("always", "one-node" if one_node else "several-nodes")
    for section, name, value in read(env):
        if section in wanted:
            env.setdefault(name, value)


def read(env: "Env") -> "Iterator[Tuple[str, str, str]]":
    """Yield section, name and value of each line."""
    section = ""
    for line in lines(env):
        if line.startswith("[") and line[1:-1] in SECTIONS and line.endswith("]"):
            section = line[1:-1]
            continue
        name, equals, value = line.partition("=")
        if not equals or section not in SECTIONS or not name.replace("_", "").isalnum():
            message = "line '{}' of the site environment file {} cannot be read"
            raise LaunchError(message.format(line[:100], env.get(VARIABLE, DEFAULT)))
        yield section, name, value


def lines(env: "Env") -> "List[str]":
    path = env.get(VARIABLE, DEFAULT)
    if not path:
        return []
    try:
        with open(path, encoding="utf-8") as file:
            return [line for line in file.read().splitlines() if line and line[0] != "#"]
    except FileNotFoundError:
        if VARIABLE not in env:
            return []  # an image without one
        raise LaunchError("{} does not exist".format(shown(env, VARIABLE))) from None
    except (OSError, ValueError) as error:
        message = "the site environment file {} cannot be read: {}"
        raise LaunchError(message.format(path, getattr(error, "strerror", error))) from None
