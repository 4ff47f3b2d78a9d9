"""An endpoint that Prometheus scrapes: a daemon thread that reads cells and nothing else. Off unless asked for."""

from __future__ import annotations

import contextlib
import http.server
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from desktop_app.core.errors import ConfigError
from desktop_app.services.facade import Workspace
from desktop_app.services.metrics_address import MetricsAddress

_log = logging.getLogger(__name__)

# The text format that dcgm-exporter serves. OpenMetrics, which a server would prefer, demands that a counter's name
# ends in _total: DCGM's do not.
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
_PATIENCE_S: Final = 5.0  # for a client that connects and says nothing
_MOST_CLIENTS: Final = 16
_POLL_S: Final = 0.2  # how long the end of the thread can take
_INSTALL: Final = "--metrics needs the package prometheus-client: pip install 'floodmark[metrics]'"
_HOME: Final = b"Floodmark: metrics for Prometheus are at /metrics\n"


class MetricsEndpoint:
    """Listens from the beginning, answers once it serves a session. Runs in: metrics thread, one more per request."""

    def __init__(self, address: MetricsAddress) -> None:
        """Take the port. ``ConfigError`` in one line: no prometheus-client, port in use, no such host."""
        try:
            import prometheus_client  # noqa: F401 - said now, not after an hour of training
        except ImportError as error:
            raise ConfigError("metrics.not_installed", f"{_INSTALL} ({error}).") from error
        self._render: Callable[[], bytes] | None = None
        self._thread: threading.Thread | None = None
        self._server = _listen(address, self._answer)
        self.address = MetricsAddress(int(self._server.server_address[1]), address.host)

    def serve(self, session: Workspace) -> None:
        """Begin to answer with what ``session`` holds at the moment of each request."""
        from desktop_app.services.metrics_text import SessionText

        self._render = SessionText(session).render
        self._thread = threading.Thread(target=self._server.serve_forever, args=(_POLL_S,), name="metrics", daemon=True)
        self._thread.start()
        _log.info("metrics are served at %s", self.address.url)

    def close(self, timeout_s: float = 1.0) -> bool:
        """Give the port back. False: an answer is still under way; it ends with the process."""
        if self._thread is not None:
            self._server.shutdown()
            self._thread.join(timeout_s)
        self._server.server_close()
        return self._thread is None or not self._thread.is_alive()

    def notice(self) -> tuple[str, str, str]:
        """(code, line, level) that says where it listens, and warns when other machines can ask."""
        line = f"Metrics for Prometheus are served at {self.address.url}"
        if not self.address.exposed:
            return "metrics.listening", f"{line}, to this machine alone.", "info"
        line += ": everybody who reaches this address can read them, without a password."
        return "metrics.exposed", line, "warning"

    def _answer(self, path: str) -> tuple[int, bytes]:
        """Status and text for a path."""
        if path == "/":
            return 200, _HOME
        if path != "/metrics" or self._render is None:
            return 404, b"not here: /metrics\n"
        try:
            return 200, self._render()
        except Exception:  # a scrape must not end the thread, nor pass for a good one
            _log.exception("the metrics could not be written")
            return 500, b"the metrics could not be written; the log says why\n"


def open_endpoint(address: MetricsAddress | None) -> MetricsEndpoint | None:
    """An endpoint on ``address``, which it holds from now on; ``None`` where none is wanted."""
    return None if address is None else MetricsEndpoint(address)


class _Server(http.server.ThreadingHTTPServer):
    """A few clients at a time, none for long."""

    daemon_threads = True
    block_on_close = False
    answer: Callable[[str], tuple[int, bytes]]

    def __init__(self, *arguments: Any) -> None:
        self._clients = threading.BoundedSemaphore(_MOST_CLIENTS)
        super().__init__(*arguments)

    def server_bind(self) -> None:
        """As its grandparent's: the parent looks the host's name up, which can take seconds."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.socket.bind(self.server_address)
        self.server_address = self.socket.getsockname()
        self.server_name, self.server_port = str(self.server_address[0]), int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        if not self._clients.acquire(blocking=False):
            self.shutdown_request(request)
            return
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._clients.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has gone is no news."""
        del request
        _log.debug("a request for metrics from %s ended early", client_address, exc_info=True)


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Handler(http.server.BaseHTTPRequestHandler):
    timeout = _PATIENCE_S
    server_version = "floodmark"
    sys_version = ""

    def setup(self) -> None:
        """``timeout`` is of one read: who sends a byte now and then would keep a place among the clients for ever."""
        super().setup()
        self._patience = threading.Timer(_PATIENCE_S, _hear_no_more, (self.request,))
        self._patience.daemon = True
        self._patience.start()

    def finish(self) -> None:
        self._patience.cancel()
        super().finish()

    def do_GET(self) -> None:
        self._reply(with_body=True)

    def do_HEAD(self) -> None:
        self._reply(with_body=False)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the parent's name
        _log.debug("metrics: " + format, *arguments)

    def _reply(self, *, with_body: bool) -> None:
        assert isinstance(self.server, _Server)
        status, text = self.server.answer(self.path.partition("?")[0])
        self.send_response(status)
        self.send_header("Content-Type", CONTENT_TYPE if status == 200 else "text/plain; charset=utf-8")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        if with_body:
            self.wfile.write(text)


def _hear_no_more(request: socket.socket) -> None:
    with contextlib.suppress(OSError):  # gone already
        request.shutdown(socket.SHUT_RD)


def _listen(address: MetricsAddress, answer: Callable[[str], tuple[int, bytes]]) -> _Server:
    try:
        found = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_STREAM)
        family, place = found[0][0], found[0][4]
        server = (_Server6 if family == socket.AF_INET6 else _Server)(place[:2], _Handler)
    except (OSError, UnicodeError) as error:
        what = error.strerror if isinstance(error, OSError) else None
        raise ConfigError(
            "metrics.cannot_listen",
            f"Cannot serve metrics at {address.host}:{address.port}: {what or error}. Choose another with --metrics "
            "[HOST:]PORT.",
        ) from error
    server.answer = answer
    return server
