"""fetch-source and archives: what is not what was pinned is refused without a trace."""

from collections.abc import Callable
from http.server import BaseHTTPRequestHandler

import pytest

from tests.servers import archive, cut, send, serve, sha256
from tests.unit.fetching import WRONG, Step, refused, silence

GOOD = archive(readme="read me\n", data="".join(f"{n * n}\n" for n in range(20_000)))
POINTS = 5


def test_a_good_archive_comes_without_its_top_folder(step: Step) -> None:
    with serve(lambda handler: send(handler, 200, GOOD)) as url:
        done = step.fetch(f"archive {url}/toy.tar.gz 1.0 {sha256(GOOD)}")
    assert done.returncode == 0, done.stderr
    assert step.left == ["there"]
    assert step.text("readme") == "read me\n"
    assert done.stdout == f"sifwright: pin toy the-toy 1.0 {sha256(GOOD)}\n"


def test_a_wrong_checksum_names_all(step: Step) -> None:
    with serve(lambda handler: send(handler, 200, GOOD)) as url:
        message = refused(step, step.fetch(f"archive {url}/toy.tar.gz 1.0 {WRONG}"))
    for word in ("'the-toy'", f"{url}/toy.tar.gz", f"expected: {WRONG}", sha256(GOOD)):
        assert word in message


@pytest.mark.parametrize("kind", ["archive http://127.0.0.1:9/toy.tar.gz", "pip toy"])
def test_files_that_the_machine_has_fetched_already(step: Step, kind: str) -> None:
    """Compare it like the rest. Nobody answers at the address."""
    ahead = step.folder / "build" / "fetched" / "sources"
    ahead.mkdir(parents=True)
    (ahead / sha256(GOOD)).write_bytes(GOOD)
    (ahead / WRONG).write_bytes(GOOD)
    nowhere = {"PIP_INDEX_URL": "http://127.0.0.1:9/simple"}
    refused(step, step.fetch(f"{kind} 1.0 {WRONG}", pip=nowhere))
    done = step.fetch(f"{kind} 1.0 {sha256(GOOD)}", pip=nowhere)
    assert done.returncode == 0, done.stderr
    assert step.text("readme") == "read me\n"
    assert done.stdout == f"sifwright: pin toy the-toy 1.0 {sha256(GOOD)}\n"


def _truncated(handler: BaseHTTPRequestHandler, length: int) -> None:
    cut(handler, GOOD, length)


def _reset(handler: BaseHTTPRequestHandler, length: int) -> None:
    cut(handler, GOOD, length, reset=True)


def _short(handler: BaseHTTPRequestHandler, length: int) -> None:
    """Cut the answer as a proxy that mends the length."""
    send(handler, 200, GOOD[:length])


def _flipped(handler: BaseHTTPRequestHandler, length: int) -> None:
    index = min(length, len(GOOD) - 1)
    send(handler, 200, GOOD[:index] + bytes([GOOD[index] ^ 1]) + GOOD[index + 1 :])


def _unended(handler: BaseHTTPRequestHandler, length: int) -> None:
    """Send chunks without the last one."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    handler.wfile.write(b"%x\r\n%s\r\n" % (max(length, 1), GOOD[: max(length, 1)]))
    handler.close_connection = True


@pytest.mark.all
@pytest.mark.parametrize("broken", [_truncated, _reset, _short, _flipped, _unended])
def test_a_broken_download_is_never_taken(
    step: Step, broken: Callable[[BaseHTTPRequestHandler, int], None]
) -> None:
    """Break it at points all over the file, its first and last bytes among them."""
    size = len(GOOD)
    points = sorted({0, 1, size - 1, *(size * n // POINTS for n in range(1, POINTS))})
    for length in points:

        def answer(handler: BaseHTTPRequestHandler, length: int = length) -> None:
            broken(handler, length)

        with serve(answer) as url:
            refused(step, step.fetch(f"archive {url}/toy.tar.gz 1.0 {sha256(GOOD)}"))


def _redirect_to(path: str) -> Callable[[BaseHTTPRequestHandler], None]:
    return lambda handler: send(handler, 302, Location=path)


def _garbage(handler: BaseHTTPRequestHandler) -> None:
    handler.wfile.write(b"SSH-2.0-OpenSSH_9.2\r\n")
    handler.close_connection = True


def _stall(handler: BaseHTTPRequestHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(GOOD)))
    handler.end_headers()
    handler.wfile.write(GOOD[:100])
    handler.wfile.flush()
    silence(handler)


SERVERS: dict[str, Callable[[BaseHTTPRequestHandler], None]] = {
    "not-found": lambda handler: send(handler, 404, GOOD),
    "forbidden": lambda handler: send(handler, 403, GOOD),
    "error": lambda handler: send(handler, 500, GOOD),
    "empty": lambda handler: send(handler, 200),
    "login-page": lambda handler: send(handler, 200, b"<html>log in</html>"),
    "longer": lambda handler: send(handler, 200, GOOD + b"\0"),
    "packed-twice": lambda handler: send(handler, 200, archive(x="y"), Content_Encoding="gzip"),
    "in-circles": _redirect_to("/again"),
    "to-a-local-file": _redirect_to("file:///etc/hostname"),
    "not-http": _garbage,
    "silence": silence,
    "stall": _stall,
}


@pytest.mark.all
@pytest.mark.parametrize("name", SERVERS)
def test_a_server_that_gives_something_else(step: Step, name: str) -> None:
    with serve(SERVERS[name]) as url:
        seconds = 1 if name in {"silence", "stall"} else 60
        source = f"archive {url}/toy.tar.gz 1.0 {sha256(GOOD)}"
        message = refused(step, step.fetch(source, stall_seconds=seconds))
    assert "'the-toy'" in message
    assert f"{url}/toy.tar.gz" in message
    assert ("too slow" in message) == (seconds == 1), message


def test_no_server(step: Step) -> None:
    message = refused(step, step.fetch(f"archive http://127.0.0.1:9/toy.tar.gz 1.0 {WRONG}"))
    assert "127.0.0.1" in message.splitlines()[-1]


def test_a_server_that_comes_back_is_asked_again(step: Step) -> None:
    bad = iter([_reset, _truncated])

    def answer(handler: BaseHTTPRequestHandler) -> None:
        broken = next(bad, None)
        if broken:
            broken(handler, 5000)
        else:
            send(handler, 200, GOOD)

    with serve(answer) as url:
        assert step.fetch(f"archive {url}/toy.tar.gz 1.0 {sha256(GOOD)}").returncode == 0
    assert step.text("readme") == "read me\n"


def test_a_mirror_is_asked_and_its_password_is_not_shown(step: Step) -> None:
    with serve(lambda handler: send(handler, 200, GOOD)) as url:
        mirror = url.replace("//", "//user:canary4711@")
        rules = (("https://upstream.example", mirror),)
        source = "archive https://upstream.example/toy.tar.gz 1.0"
        message = refused(step, step.fetch(f"{source} {WRONG}", rules=rules))
        assert f"https://upstream.example/toy.tar.gz (asked: {url}/toy.tar.gz)" in message
        assert "canary4711" not in message
        done = step.fetch(f"{source} {sha256(GOOD)}", rules=rules)
    assert done.returncode == 0
    assert "canary4711" not in done.stdout + done.stderr


def test_other_files_than_archives_are_refused(step: Step) -> None:
    data = b"not an archive"
    with serve(lambda handler: send(handler, 200, data)) as url:
        message = refused(step, step.fetch(f"archive {url}/toy.tar.gz 1.0 {sha256(data)}"))
    assert "cannot be unpacked" in message


def test_a_file_that_is_no_archive_keeps_its_name(step: Step) -> None:
    data = b"#!/bin/sh\n"
    with serve(lambda handler: send(handler, 200, data)) as url:
        done = step.fetch(f"archive {url}/Install-1.0-x86_64.sh 1.0 {sha256(data)}")
        assert done.returncode == 0, done.stderr
    assert step.text("Install-1.0-x86_64.sh") == "#!/bin/sh\n"


def test_without_a_pin_the_first_use_counts(step: Step) -> None:
    with serve(lambda handler: send(handler, 200, GOOD)) as url:
        source = f"archive {url}/toy.tar.gz 1.0 -"
        message = refused(step, step.fetch(source, record=f"toy the-toy 1.0 {WRONG}\n"))
        assert f"expected: {WRONG}, what it was when it was first used here" in message
        others = f"toy the-toy 1.1 {WRONG}\nother the-toy 1.0 {WRONG}\n"
        first = step.fetch(source, record=others)
    assert first.stdout == f"sifwright: pin toy the-toy 1.0 {sha256(GOOD)}\n"


def test_a_source_that_the_layer_does_not_have(step: Step) -> None:
    message = refused(step, step.fetch(""))
    assert "layer 'toy' has no source 'the-toy'" in message


def test_a_folder_that_is_there(step: Step) -> None:
    (step.folder / "work" / "there").mkdir(parents=True)
    done = step.fetch(f"archive http://127.0.0.1:9/x 1.0 {WRONG}")
    assert done.returncode == 1
    assert "there is there already" in done.stderr
