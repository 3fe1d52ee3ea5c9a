"""A mirror with TLS and a login, where all files are alike: mirror.py FOLDER-OF-KEY-AND-LOGIN."""

import base64
import http.server
import pathlib
import ssl
import sys

FOLDER = pathlib.Path(sys.argv[1])
LOGIN = base64.b64encode((FOLDER / "login").read_bytes()).decode()


def say(*words: object) -> None:
    """Write a line at once."""
    sys.stdout.write(f"{' '.join(map(str, words))}\n")
    sys.stdout.flush()


class Mirror(http.server.BaseHTTPRequestHandler):
    """A server that answers clients with the login, and prints each client."""

    def do_GET(self) -> None:
        allowed = self.headers.get("Authorization") == f"Basic {LOGIN}"
        self.send_response(200 if allowed else 404)
        self.end_headers()
        self.wfile.write(b"a word\n")
        say(self.client_address[0], self.path, "login" if allowed else "none")


with http.server.ThreadingHTTPServer(("", 0), Mirror) as server:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(FOLDER / "certificate", FOLDER / "key")
    server.socket = context.wrap_socket(server.socket, server_side=True)
    say(server.server_address[1])
    server.serve_forever()
