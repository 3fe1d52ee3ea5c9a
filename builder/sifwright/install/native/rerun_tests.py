"""Run the layers' tests again in an installation."""

from sifwright.install.native.install_steps import TEST_FAILED, run_tests
from sifwright.install.native.native_folder import NativeFolder
from sifwright.make_image.resolve_request.output_parser import OutputParser
from sifwright.system.progress import Progress, Timer
from sifwright.system.tempdirs import temporary_root, workspace


def rerun_tests(folder: NativeFolder, progress: Progress) -> None:
    """Run the tests of the version in use; nothing is written into the folder.

    Raises `UsageError` if the folder has no such version, `TestError` if a test fails.
    """
    version = folder.in_use()
    look = f"Name damaged files: sifwright report --all --prefix {folder.root}"
    with Timer(progress) as timer, workspace(temporary_root()) as scratch:
        timer.start("test")
        watcher = OutputParser(timer=timer, fix=f"Show all of it with --verbose. {look}")
        status = run_tests(version.folder, None, scratch, scratch / "log", watcher)
        watcher.refuse_failed_test(status, TEST_FAILED)
