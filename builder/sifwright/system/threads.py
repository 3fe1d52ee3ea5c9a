"""Calls beside other work, in threads that the end of the program does not wait for."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


def start(call: Callable[[], T]) -> Future[T]:
    """Start a call in a new thread; return its future result, or error."""
    future: Future[T] = Future()
    threading.Thread(target=settle, args=(future, call), daemon=True).start()
    return future


def settle(future: Future[T], call: Callable[[], T]) -> None:
    """Call, and put the result or the error into the future."""
    try:
        future.set_result(call())
    except Exception as error:  # noqa: BLE001  # the future has it
        future.set_exception(error)
