"""Reading variables of the environment, and naming them in messages."""

from .errors import LaunchError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Dict

    Env = Dict[str, str]

DIGITS = frozenset("0123456789")
MAX_DIGITS = 9


def shown(env: "Env", name: str) -> str:
    """Tell how a variable appears in a message."""
    return "{}='{}'".format(name, env[name]) if name in env else name + " (unset)"


def is_number(text: str) -> bool:
    """Tell whether a text is a whole number without sign or leading zeros."""
    return (
        0 < len(text) <= MAX_DIGITS and DIGITS.issuperset(text) and (text == "0" or text[0] != "0")
    )


def number(env: "Env", name: str) -> int:
    """Return the value of a variable; raises `LaunchError` if it is unset or no number."""
    if name not in env:
        message = "{} is not set, but the other variables of its launcher are"
        raise LaunchError(message.format(name))
    if not is_number(env[name]):
        raise LaunchError("{} is not a whole number".format(shown(env, name)))
    return int(env[name])


def below(env: "Env", smaller: str, larger: str) -> None:
    """Refuse a rank that is not below its size."""
    if number(env, smaller) >= number(env, larger):
        message = "{} must be below {}".format(shown(env, smaller), shown(env, larger))
        raise LaunchError(message)


def together(env: "Env", first: str, second: str) -> None:
    """Refuse one of two variables without the other."""
    for here, missing in ((second, first), (first, second)):
        if missing not in env and here in env:
            message = "{} is set without {}: set both or neither".format(shown(env, here), missing)
            raise LaunchError(message)
