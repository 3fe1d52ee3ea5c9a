"""A build from top to bottom: check, run steps, assemble, test, publish.

The plan has been resolved. prepare_build.py checks the machine. The engine that runs the steps, and
assembles the image, is Apptainer, Docker Engine or podman.
"""

from sifwright.errors import Interrupted
from sifwright.host.emulation import emulate
from sifwright.make_image.choose_engine import choose_engine
from sifwright.make_image.lock.installed import refuse_difference
from sifwright.make_image.prepare_build import prepare_build
from sifwright.make_image.publish_image.publish import publish
from sifwright.make_image.resolve_request.build_request import BuildRequest
from sifwright.make_image.run_steps.step_engine import run_steps
from sifwright.make_image.test_image.check_processor import refuse_other_processor
from sifwright.make_image.test_image.run_tests import run_tests
from sifwright.system.progress import Progress, Timer


def build_image(request: BuildRequest, progress: Progress) -> None:
    """Build the image, test it and publish it.

    Raises `MachineError` before anything is written, `BuildError` or `TestError` later. After
    any error, the image that was published before stays.
    """
    is_new = False
    try:
        with (
            Timer(progress) as timer,
            prepare_build(request, timer) as context,
            choose_engine(context) as engine,
        ):
            artifact = run_steps(engine, len(context.plan.steps), engine.finish)
            if lock := context.options.lock:
                name = context.output.tag or str(context.output.link)
                refuse_difference(lock, engine.installed(artifact), name)
            if emulate.is_started():
                sif, processor = context.staging / "image.sif", context.plan.site.processor
                refuse_other_processor(sif, processor)
            passed = run_tests(context, engine, artifact)
            publish(context, artifact, passed)
            is_new = True
    except KeyboardInterrupt:
        # It may also come while folders are removed.
        if is_new:
            raise Interrupted.of("stopped; the new image is in place") from None
        raise
