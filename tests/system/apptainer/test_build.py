"""The files of a successful build."""

from __future__ import annotations

import json
import pstats
import sys
from pathlib import Path

from sifwright.images.sif import sif_file
from sifwright.images.sif.copy_data import Range
from sifwright.images.sif.fingerprint import sif_fingerprint
from sifwright.images.squashfs import join_layers
from tests.conftest import run, sifwright
from tests.system.apptainer.toys import Toy, succeeded

# The plan, its document, and the recipe in one file and as a folder.
ONCE = (
    ("resolve.py", "resolve"),
    ("plan_file.py", "plan_json"),
    ("definition.py", "definition"),
    ("definition.py", "folder_definition"),
)
HOSTILE = "$(touch /pwned) `touch /pwned` '\"; touch /pwned; echo \\ ${HOME} #{x} ümlaut"
PLACE = "/opt/lib/python3.11/site-packages/part-1.0.dist-info"
# The files that pip leaves of a wheel whose server builds it again for each download.
INSTALL = f"""mkdir -p {PLACE}
printf 'Metadata-Version: 2.1\\nName: part\\nVersion: 1.0\\n' >{PLACE}/METADATA
echo "$(</proc/sys/kernel/random/uuid)" >{PLACE}/RECORD
"""
LINE = "other files than in the image before, at the same version: part-1.0"


def test_a_build_leaves_image_record_and_link(toy: Toy, engine: str) -> None:
    """Read the labels back, and build again with other output."""
    toy.layer("hello", "echo hello >/hello  # this test's\n", test="[[ $(cat /hello) == hello ]]\n")
    toy.image("hello")
    built = succeeded(toy.build())
    needs, check, base, hello, *_ = (line.split() for line in built.stdout.splitlines())
    assert needs[0] == "needs"
    assert check[:4] == ["check", "this", "machine", "done"]
    assert base[0] == "base-local"  # another test may have left it in the cache
    assert hello[:2] == ["hello", "done"]
    record = json.loads((toy.output / "record.json").read_text())
    assert record["sif_fingerprint"] == sif_fingerprint(toy.sif)
    assert toy.sif.readlink().name == record["sif"]
    assert record["plan"] == json.loads((toy.output / "plan.json").read_text())
    assert (
        toy.execute(engine, "cat", "/opt/sifwright/plan.json")
        == (toy.output / "plan.json").read_text()
    )
    assert toy.leftovers() == []
    labels = json.loads(sifwright("inspect", "--labels", toy.sif, "--json").stdout)
    assert labels["org.sifwright.plan"] == record["plan"]["id"]
    assert labels["org.sifwright.site"] == "local"
    assert toy.build("--quiet", "--force").stdout == ""
    events = [json.loads(line) for line in toy.build("--json", "--force").stdout.splitlines()]
    finished = [event["step"] for event in events if event["event"] == "finished"]
    assert finished[:2] == ["check this machine", "base-local"]
    assert {event.get("state", "done") for event in events} <= {"done", "cached"}


def test_plan_and_texts_are_made_once(toy: Toy, tmp_path: Path) -> None:
    toy.layer("hello", f"echo {tmp_path} >/hello\n")
    toy.image("hello")
    profile = tmp_path / "profile"
    program = [sys.executable, "-m", "cProfile", "-o", profile, "-m", "sifwright"]
    succeeded(run([*program, *toy.command()]))
    functions = pstats.Stats(str(profile)).stats.items()  # type: ignore[attr-defined]
    calls = {(Path(file).name, name): number for (file, _, name), (_, number, *_) in functions}
    assert {function: calls[function] for function in ONCE} == dict.fromkeys(ONCE, 1)


def test_the_image_before_a_change_stays(toy: Toy) -> None:
    toy.layer("hello", "echo one >/hello\n")
    toy.image("hello")
    assert toy.build().returncode == 0
    first = toy.sif.resolve()
    toy.layer("hello", "echo two >/hello\n")
    changed = toy.build()
    assert toy.sif.resolve() != first
    assert first.exists()
    assert "older images" in changed.stdout


def test_options_reach_scripts_as_data_only(toy: Toy, engine: str) -> None:
    option = {"type": "string", "description": "any text", "default": ""}
    toy.layer(
        "say",
        "printf '%s' \"$OPT_WORDS\" >/said\n",
        test='[[ $(cat /said) == "$OPT_WORDS" ]]\n[[ ! -e /pwned ]]\n',
        header={"options": {"words": option}},
    )
    toy.image("say")
    succeeded(toy.build("--set", f"say.words={HOSTILE}"))
    assert toy.execute(engine, "cat", "/said") == HOSTILE


def test_env_reaches_later_layers_and_the_image(toy: Toy, engine: str) -> None:
    rules = {"GREETING": {"set": "a 'b' $c"}, "PATH": {"prepend": "/toy/bin"}}
    toy.layer("sets", "export LEAK=1\n", header={"env": rules | {"SOFT": {"default": "soft"}}})
    # The programs of the build come before all, and only there.
    toy.layer(
        "sees",
        "[[ $PATH == /.sifwright/bin:* ]]\nPATH=${PATH#*:}\n"
        'echo "$GREETING|${LEAK-none}|${PATH%%:*}|$SOFT" >/seen\n',
    )
    toy.image("sets", "sees")
    assert toy.build().returncode == 0
    expected = "a 'b' $c|none|/toy/bin|soft\n"
    assert toy.execute(engine, "cat", "/seen") == expected
    script = 'echo "$GREETING|${LEAK-none}|${PATH%%:*}|$SOFT"'
    assert toy.execute(engine, "bash", "-c", script) == expected


def test_the_sif_is_compressed_as_the_site_says(toy: Toy, engine: str) -> None:
    site = toy.folder / "defs" / "sites" / "local.yaml"
    for compression in ("zstd", "gzip"):
        facts = json.loads(site.read_text()) | {"sif": {"compression": compression}}
        site.write_text(json.dumps(facts))
        assert toy.build().returncode == 0, engine
        (part,) = sif_file.partitions(toy.sif)
        packed = Range(path=toy.sif, offset=part.offset, size=part.size)
        assert join_layers.compression(packed) == compression


def test_a_wheel_with_other_files_at_the_same_version(toy: Toy) -> None:
    toy.layer("wheels", INSTALL)
    toy.image("wheels")
    outputs, digests = [], []
    for words in ([], ["--force"], ["--no-cache", "--force"]):
        built = succeeded(toy.build(*words))
        outputs.append(built.stdout + built.stderr)
        digests.append(json.loads((toy.output / "record.json").read_text())["python_files"][PLACE])
    assert [LINE in output for output in outputs] == [False, False, True]
    first, cached, again = digests
    assert first == cached != again
