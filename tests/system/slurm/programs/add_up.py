"""Adds up one value of every rank at rank 0, without torch: starts fast, and as careless as torch.

A client at MASTER_PORT with the right first word is taken for a rank of this launch. Other clients
are sent away, as torch's TCPStore does: a late caller of another launch's roll call may come by.
Prints the sum on every rank.
"""

import os
import socket
import sys
import time

RANK, SIZE = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
PLACE = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
SECONDS = 240
WORD = b"add "


def serve(own: int) -> int:
    with socket.socket() as server:
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as torch's TCPStore
        server.bind(("", PLACE[1]))
        server.listen()
        server.settimeout(SECONDS)
        guests = [admit(server) for _ in range(SIZE - 1)]
    total = own + sum(value for _, value in guests)
    for guest, _ in guests:
        guest.sendall(str(total).encode())
    return total


def admit(server: socket.socket) -> tuple[socket.socket, int]:
    while True:
        guest = server.accept()[0]
        message = guest.recv(100)
        if message.startswith(WORD):
            return guest, int(message.removeprefix(WORD))
        guest.close()


def visit(own: int) -> int:
    end = time.monotonic() + SECONDS
    while True:
        try:
            with socket.create_connection(PLACE, SECONDS) as connection:
                connection.sendall(WORD + str(own).encode())
                return int(connection.recv(100))
        except ConnectionRefusedError:
            if time.monotonic() > end:
                raise
            time.sleep(0.02)


value = int(sys.argv[1])
total = serve(value) if RANK == 0 else visit(value)
# In one write: ranks of a node share the descriptor, and print() writes the line end apart.
sys.stdout.write(f"sum {total} of {SIZE} at {PLACE[1]}\n")
