"""Fixtures for tests of several folders: the checkout, its commands and the image of site local."""

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Generator, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from sifwright.system import tempdirs
from tests import buildrecord, durations, forked, left_out, scheduling, second_try, tiers
from tests.expectation import expectation_first
from tests.network import has_network

ROOT = Path(__file__).resolve().parents[1]
ENGINE = shutil.which("apptainer") or shutil.which("singularity")
RUNS = ROOT / "build" / "tests"  # folders of runs
# One umask for all tests: as root, Lmod reads no module that others cannot read. Tests of other
# umasks set them.
os.umask(0o022)

# hypothesis's own profile for CI: a machine may be busy, and no change is refused by chance.
settings.register_profile(
    "sifwright",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("sifwright")


def pytest_configure(config: pytest.Config) -> None:
    """Give the run a step cache of its own, which its workers share; it is gone afterwards."""
    if "PYTEST_XDIST_WORKER" not in os.environ:
        tempdirs.remove_stale(RUNS)
        with contextlib.ExitStack() as stack:
            os.environ["SIFWRIGHT_CACHE"] = str(stack.enter_context(tempdirs.workspace(RUNS)))
            config.add_cleanup(stack.pop_all().close)
    forked.start_server()  # not when this file is loaded, which its forks do, too


@pytest.hookimpl(tryfirst=True)  # before -m chooses
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: scheduling.turn(item.nodeid))
    for item in items:
        tiers.mark_tier(item)
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_SECONDS))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> scheduling.Scheduling:
    return scheduling.Scheduling(config, log)


# Put before a program that a test interrupts. Shells start `make test &` with SIGINT ignored, nohup
# with SIGHUP ignored, and every program inherits both.
DEFAULT_SIGNALS = ("env", "--default-signal=INT,HUP")
SLOW_SECONDS = 7200
OFFLINE = "tests/system/gpu/"  # a cluster's nodes with GPUs have no network
FORK_OPTIONS = {"cwd", "env", "input", "timeout", "missing"}


def run(command: Sequence[object], **options: object) -> subprocess.CompletedProcess[str]:
    """Run a program to its end, keep its output, and note the images and prefixes it built."""
    defaults = {"capture_output": True, "text": True, "timeout": 900, "cwd": ROOT}
    settings: dict[str, object] = {**defaults, **options}
    done: subprocess.CompletedProcess[str] = subprocess.run(  # type: ignore[call-overload]
        [str(word) for word in command], check=False, **settings
    )
    buildrecord.note(done, Path(str(settings["cwd"])))
    return done


def sifwright(*arguments: object, **options: object) -> subprocess.CompletedProcess[str]:
    """Run a command line; options of subprocess.run that a fork has not start a new Python."""
    options = {"cwd": ROOT, **options}
    if options.keys() <= FORK_OPTIONS:
        done = forked.run(arguments, **options)  # type: ignore[arg-type]
        buildrecord.note(done, Path(str(options["cwd"])))
        return done
    return run([sys.executable, "-m", "sifwright", *arguments], **options)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    online = item.nodeid.startswith("tests/system/") and not item.nodeid.startswith(OFFLINE)
    if online and "CI" not in os.environ and not has_network():
        pytest.skip("no network: pip's index does not answer")
    with left_out.without_programs():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Fail a test that passed without the builds that it claims."""
    with left_out.without_programs():
        result = yield
    buildrecord.check(item)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(call: pytest.CallInfo[None]) -> None:
    """Put expectations first, of tests, fixtures and helpers."""
    if call.excinfo and isinstance(error := call.excinfo.value, AssertionError):
        statement = str(call.excinfo.traceback[-1].statement).strip()
        error.args = (expectation_first(str(error), statement),)


def pytest_addoption(parser: pytest.Parser) -> None:
    text = "run failed tests of tiers smoke and all once more, each by itself"
    parser.addoption("--second-try", action="store_true", help=text)


@pytest.hookimpl(trylast=True)  # when the other processes have ended
def pytest_sessionfinish(session: pytest.Session) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    has_failed = session.exitstatus == pytest.ExitCode.TESTS_FAILED
    if reporter and has_failed and session.config.getoption("--second-try"):
        reporter.write_line("")
        reporter.write_line("running failed tests once more")
        if second_try.run_again(reporter.stats):
            session.exitstatus = pytest.ExitCode.OK


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what took long, what was left out, and what passed at the second try only."""
    stats = terminalreporter.stats
    reports = [report for kind in stats.values() for report in kind]
    timed = [report for report in reports if isinstance(report, pytest.TestReport)]
    for line in (
        *durations.too_long(timed),
        *left_out.left_out(stats.get("skipped", ())),
        *second_try.summary(stats),
    ):
        terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def engine() -> str:
    """Return the container engine; without one its tests are skipped, except in CI."""
    if ENGINE is None:
        if os.environ.get("CI"):
            pytest.fail("CI installs Apptainer, but there is none on PATH")
        pytest.skip("neither apptainer nor singularity is on PATH: tools/install-apptainer")
    return ENGINE


@pytest.fixture(scope="session")
def image(engine: str) -> Path:
    """Return the real image of site local; build it if it is missing or of another checkout."""
    built = sifwright("build", "local", "pytorch", timeout=3600)
    assert built.returncode == 0, f"{engine}: {built.stdout}{built.stderr}"
    return ROOT / "build" / "local" / "pytorch" / "image.sif"
