"""Lists of binds are read alike by job scripts, commands, and modulefiles of either syntax."""

from __future__ import annotations

import pytest

from tests.bind_cases import CASES
from tests.conftest import run
from tests.unit.conftest import CHECKOUT, program

INSTALL = CHECKOUT / "builder/sifwright/install"
# Scripts that print the binds of LIST, an empty word, and the targets, by our file of each
# language.
BASH = r"""
add_binds "$LIST"
targets=("${!BOUND[@]}")
printf '%s\0' "${BINDS[@]}" '' "${targets[@]#:}"
"""
LUA = r"""
local found, targets = entries(os.getenv("LIST"), ","), {}
for _, one in ipairs(found) do targets[#targets + 1] = target(one, ",") end
io.write(table.concat(found, "\0"), "\0\0", table.concat(targets, "\0"), "\0")
"""
TCL = r"""
set found [sifwright_entries $env(LIST) ,]
foreach one $found { lappend targets [sifwright_target $one ,] }
puts -nonewline "[join $found \0]\0\0[join $targets \0]\0"
"""
DRIVERS = {
    "bash": ("share/binds.sh", BASH),
    "lua": ("templates/binds.lua", LUA),
    "tclsh": ("templates/binds.tcl", TCL),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("interpreter", DRIVERS)
def test_a_list_is_read_as_the_engine_reads_it(interpreter: str, name: str) -> None:
    text, expected = CASES[name]
    file, lines = DRIVERS[interpreter]
    script = f"{(INSTALL / file).read_text()}\n{lines}"
    done = run([program(interpreter), "/dev/stdin"], input=script, env={"LIST": text})
    binds, _, targets = done.stdout.removesuffix("\0").partition("\0\0")
    assert (binds.split("\0"), done.stderr) == (list(expected), "")
    assert sorted(targets.split("\0")) == sorted(expected.values())
