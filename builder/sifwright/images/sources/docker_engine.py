"""An image of Docker Engine, or of podman's service: it streams the image, nothing is stored."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from sifwright.errors import MachineError
from sifwright.host.network import http
from sifwright.images.model import FoundImage, ImageContents, Source, SourceError
from sifwright.images.oci.streams import PieceStream
from sifwright.images.sources import archive
from sifwright.system.progress import Timer

_SECONDS = 120
_PIECE = 1 << 20
_FIX = (
    "Start Docker Engine, or 'podman system service --time=0' and set DOCKER_HOST to its socket."
    " Your user must be allowed to use it."
)


def find(source: Source, processor: str) -> FoundImage:
    """Ask the engine. Raises `SifwrightError`."""
    image_id = identity(source.name)

    def read(timer: Timer) -> ImageContents:
        timer.start(f"{source.name} from the engine")
        with connected(source.name) as client:
            stream = PieceStream(client.get_image(source.name, chunk_size=_PIECE))
            return archive.read_docker(stream, "", processor)

    return FoundImage(key=f"{image_id} {processor}", read=read)


def identity(name: str) -> str:
    """Return the id (sha256:…) of the engine's image. Raise `SifwrightError`."""
    with connected(name) as client:
        image_id = str(client.inspect_image(name)["Id"])
    return image_id if image_id.startswith("sha256:") else f"sha256:{image_id}"


@contextmanager
def connected(name: str) -> Iterator[Any]:
    """Connect to the first engine, and translate its errors."""
    import docker  # noqa: PLC0415  # 150 ms that other sources need not pay
    from docker.errors import DockerException, ImageNotFound  # noqa: PLC0415

    from sifwright.host.engines.docker import contexts, find_engine  # noqa: PLC0415

    address = next(iter(find_engine.addresses()), "")
    if not address:
        raise MachineError.of("there is no engine to ask", where=f"docker-daemon:{name}", fix=_FIX)
    shown = contexts.redact_login(address)
    if address.startswith("unix://") and not Path(address.removeprefix("unix://")).is_socket():
        raise MachineError.of("there is no such socket", where=address, fix=_FIX)
    try:
        find_engine.require_listener(address)
        with closing(
            docker.APIClient(base_url=address, version="auto", timeout=_SECONDS)
        ) as client:
            yield client
    except ImageNotFound:
        fix = "See 'docker images' for what it has, or name one of a registry by docker://."
        raise SourceError.of("the engine has no such image", where=name, fix=fix) from None
    except (DockerException, OSError) as error:
        if refused := find_engine.no_permission(address, error):
            raise refused from None
        why = http.root_cause(error).replace(address.strip(), shown)
        raise MachineError.of(why, where=shown, fix=_FIX) from None
