"""The endpoint that Prometheus scrapes: where it listens, whom it waits for, and a real server that reads it."""

from __future__ import annotations

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from desktop_app import cli
from desktop_app.app import serve_metrics
from desktop_app.core.clock import SessionClock
from desktop_app.core.errors import ConfigError, ExitCode
from desktop_app.core.lifecycle import StageOutcome
from desktop_app.core.telemetry import Reading
from desktop_app.core.units import MIB
from desktop_app.services.metrics_address import MetricsAddress, parse_address
from desktop_app.services.metrics_endpoint import CONTENT_TYPE, MetricsEndpoint, open_endpoint
from desktop_app.services.session import Session

from .doubles import FakeBackend, FakeTrainer, make_card, make_estimate
from .metrics_session import ask_prometheus, fetch, make_session, prometheus, real_card, tool

READINGS = {"GPU-a": {"memory_used_bytes": Reading(2048.0 * MIB), "power_w": Reading(151.5)}}


@pytest.fixture
def endpoint() -> Iterator[MetricsEndpoint]:
    """One that serves a card, on a port of its own."""
    made = MetricsEndpoint(MetricsAddress(0))
    made.serve(make_session(real_card(), readings=READINGS))
    yield made
    assert made.close()


@pytest.mark.parametrize(
    ("text", "host", "port", "exposed", "url"),
    [
        ("9400", "127.0.0.1", 9400, False, "http://127.0.0.1:9400/metrics"),
        ("0", "127.0.0.1", 0, False, "http://127.0.0.1:0/metrics"),
        ("localhost:9400", "localhost", 9400, False, "http://localhost:9400/metrics"),
        ("127.0.0.9:65535", "127.0.0.9", 65535, False, "http://127.0.0.9:65535/metrics"),
        ("[::1]:9400", "::1", 9400, False, "http://[::1]:9400/metrics"),
        ("0.0.0.0:9400", "0.0.0.0", 9400, True, "http://0.0.0.0:9400/metrics"),  # noqa: S104
        ("[::]:9400", "::", 9400, True, "http://[::]:9400/metrics"),
        ("192.168.0.7:9400", "192.168.0.7", 9400, True, "http://192.168.0.7:9400/metrics"),
        ("gpu-box:9400", "gpu-box", 9400, True, "http://gpu-box:9400/metrics"),
    ],
)
def test_addresses(text: str, host: str, port: int, *, exposed: bool, url: str) -> None:
    address = parse_address(text)
    assert (address.host, address.port, address.exposed, address.url) == (host, port, exposed, url)


@pytest.mark.parametrize(
    "text", ["", "x", ":9400", "65536", "٩٤٠٠", "-1", "::1:9400", "a b:1", "host:", "http://x:1", "9400/m"]
)
def test_what_is_no_address_is_bad_usage(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="is no address to listen on"):
        parse_address(text)
    with pytest.raises(SystemExit) as ended:
        cli.run([f"--metrics={text}"])
    assert ended.value.code == ExitCode.USAGE
    said = capsys.readouterr().err
    assert said.startswith("floodmark: argument --metrics: ")
    assert said.count("\n") == 1


def test_it_is_off_unless_asked_for() -> None:
    assert open_endpoint(None) is None
    for command in ([], ["demo"], ["train", "x.toml"]):
        assert cli._launch(cli._parser().parse_args(command)).metrics is None
        for given in ([*command, "--metrics", "9400"], ["--metrics", "9400", *command]):
            assert cli._launch(cli._parser().parse_args(given)).metrics == MetricsAddress(9400), given


def test_a_port_in_use_is_one_line_before_anything_begins(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code = cli.run(["demo", "--headless", "--metrics", str(port)])
    said = capsys.readouterr().err
    assert code == ExitCode.USAGE
    assert said == (
        f"floodmark: Cannot serve metrics at 127.0.0.1:{port}: Address already in use. Choose another with --metrics "
        "[HOST:]PORT.\n"
    )


def test_a_host_that_is_none_of_this_machine() -> None:
    with pytest.raises(ConfigError, match=r"^Cannot serve metrics at 203\.0\.113\.7:0: "):
        MetricsEndpoint(MetricsAddress(0, "203.0.113.7"))


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(
        ConfigError, match=r"^--metrics needs the package prometheus-client: pip install 'floodmark\[me"
    ):
        MetricsEndpoint(MetricsAddress(0))


def test_where_it_listens_is_said_and_who_may_ask() -> None:
    alone, exposed = MetricsEndpoint(MetricsAddress(0)), MetricsEndpoint(MetricsAddress(0, "0.0.0.0"))  # noqa: S104
    port = exposed.address.port
    assert alone.notice() == (
        "metrics.listening",
        f"Metrics for Prometheus are served at http://127.0.0.1:{alone.address.port}/metrics, to this machine alone.",
        "info",
    )
    assert exposed.notice() == (
        "metrics.exposed",
        f"Metrics for Prometheus are served at http://0.0.0.0:{port}/metrics: everybody who reaches this address can "
        "read them, without a password.",
        "warning",
    )
    assert alone.close()
    assert exposed.close()


def test_what_it_answers(endpoint: MetricsEndpoint) -> None:
    status, text = fetch(endpoint.address.url)
    assert status == 200
    assert text.startswith("# HELP floodmark_build_info ")
    assert "\nDCGM_FI_DEV_FB_USED{" in text
    home = endpoint.address.url.removesuffix("metrics")
    assert fetch(home)[0] == 200
    assert fetch(f"{home}etc/passwd")[0] == 404
    with socket.create_connection(("127.0.0.1", endpoint.address.port), timeout=5) as client:
        client.sendall(b"HEAD /metrics HTTP/1.0\r\n\r\n")
        head = client.makefile("rb").read().decode()
    assert f"Content-Type: {CONTENT_TYPE}\r\n" in head
    assert head.endswith("\r\n\r\n")


def test_a_scrape_that_fails_is_no_good_one(caplog: pytest.LogCaptureFixture) -> None:
    broken: Any = make_session(real_card())
    del broken.run
    endpoint = MetricsEndpoint(MetricsAddress(0))
    endpoint.serve(broken)
    status, text = fetch(endpoint.address.url)
    assert (status, text) == (500, "the metrics could not be written; the log says why\n")
    assert "could not be written" in caplog.text
    assert endpoint.close()


@pytest.mark.alone
def test_clients_that_say_nothing_keep_nobody_waiting(endpoint: MetricsEndpoint) -> None:
    place = ("127.0.0.1", endpoint.address.port)
    with ExitStack() as held:
        for _ in range(8):
            held.enter_context(socket.create_connection(place, timeout=5))
        began_s = time.monotonic()
        assert fetch(endpoint.address.url)[0] == 200
        assert time.monotonic() - began_s < 2.0, "a client that says nothing is waited for 5 s"
        for _ in range(16):  # more than it takes: those beyond are hung up on
            held.enter_context(socket.create_connection(place, timeout=5))
        with pytest.raises(OSError):
            fetch(endpoint.address.url)
        began_s = time.monotonic()
        assert endpoint.close(1.0)
        assert time.monotonic() - began_s < 1.0
    endpoint._thread = None  # the fixture closes again
    assert not any(thread.name == "metrics" for thread in threading.enumerate())


def test_a_prometheus_server_scrapes_it(endpoint: MetricsEndpoint, tmp_path: Path) -> None:
    """Debian's: every scrape is good, and values and labels arrive as they were sent."""
    tool("prometheus")
    target = f"127.0.0.1:{endpoint.address.port}"
    with prometheus(tmp_path, target) as server:
        (used,) = ask_prometheus(server, "DCGM_FI_DEV_FB_USED")
        (up,) = ask_prometheus(server, "up")
        (own,) = ask_prometheus(server, "floodmark_gpu_memory_used_bytes")
        (failed,) = ask_prometheus(server, "scrape_samples_scraped%20-%20scrape_samples_post_metric_relabeling")
    assert (up["value"][1], used["value"][1], own["value"][1]) == ("1", "2048", "2147483648")
    assert failed["value"][1] == "0"
    assert (
        used["metric"].items()
        >= {
            "UUID": "GPU-a",
            "gpu": "0",
            "device": "nvidia0",
            "modelName": "NVIDIA GeForce RTX 3090",
            "DCGM_FI_DRIVER_VERSION": "570.86.10",
            "pci_bus_id": "00000000:01:00.0",
        }.items()
    )
    assert own["metric"]["simulated"] == "false"


def test_a_client_that_dribbles_is_heard_no_longer_than_one_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, endpoint: MetricsEndpoint
) -> None:
    monkeypatch.setattr("desktop_app.services.metrics_endpoint._PATIENCE_S", 0.3)
    with socket.create_connection((endpoint.address.host, endpoint.address.port), timeout=5.0) as client:
        client.sendall(b"GET /metrics HTTP/1.1\r\nX: ")
        end_s = time.monotonic() + 5.0
        with contextlib.suppress(OSError):  # a broken pipe or a reset, as it comes
            while time.monotonic() < end_s:
                client.sendall(b"a")
                threading.Event().wait(0.05)
        assert time.monotonic() < end_s, "still heard after 5 s"
    assert fetch(endpoint.address.url)[0] == 200


def test_a_session_is_served_from_its_beginning_to_its_end() -> None:
    """It is the first to go, a notice says where it is, and what it says is what the session holds."""
    trainer = FakeTrainer(steps=1)
    session = Session(
        clock=SessionClock(),
        backend=FakeBackend(make_card()),
        compute_estimate=lambda *_: make_estimate(),
        train=trainer,
        sampling_hz=50.0,
    )
    endpoint = MetricsEndpoint(MetricsAddress(0))
    assert fetch_nothing(endpoint)
    serve_metrics(session, endpoint)
    try:
        session.open()
        assert session.wait_for_cards(timeout_s=10.0) is not None
        (notice,) = session.notices.get()
        assert (notice.code, notice.level) == ("metrics.listening", "info")
        text = fetch(endpoint.address.url)[1]
        assert 'simulated="true"' in text
        assert "\nfloodmark_gpu_memory_used_bytes{" in text
        assert "floodmark_run_" not in text
    finally:
        results = session.close()
    assert results[0].name == "metrics"
    assert all(result.outcome is StageOutcome.DONE for result in results)
    with pytest.raises(OSError):
        fetch(endpoint.address.url)


def fetch_nothing(endpoint: MetricsEndpoint) -> bool:
    """Before it serves, it holds its port and answers nobody."""
    with socket.create_connection(("127.0.0.1", endpoint.address.port), timeout=5) as client:
        client.settimeout(0.05)
        client.sendall(b"GET /metrics HTTP/1.0\r\n\r\n")
        try:
            return not client.recv(1)
        except TimeoutError:
            return True
