"""Where the metrics are served: ``[HOST:]PORT``, this machine alone unless a host is given. No import of the client."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Final

LOOPBACK: Final = "127.0.0.1"
_ADDRESS: Final = re.compile(
    r"(?:(?:\[(?P<six>[0-9A-Fa-f:.]+(?:%[\w.]+)?)\]|(?P<host>[^\s:\[\]/]+)):)?(?P<port>[0-9]{1,5})"
)


@dataclass(frozen=True, slots=True)
class MetricsAddress:
    """A host, and a port on it; port 0 is any that is free."""

    port: int
    host: str = LOOPBACK

    @property
    def exposed(self) -> bool:
        """Whether other machines may reach it. A name is looked up by the system: only "localhost" is trusted."""
        try:
            return not ipaddress.ip_address(self.host.partition("%")[0]).is_loopback
        except ValueError:
            return self.host.lower() != "localhost"

    @property
    def url(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}/metrics"


def parse_address(text: str) -> MetricsAddress:
    """``9400``, ``0.0.0.0:9400``, ``[::1]:9400``. ``ValueError`` in one line for anything else."""
    found = _ADDRESS.fullmatch(text.strip())
    if found is None or not 0 <= int(found["port"]) <= 65535:
        raise ValueError(
            f"{text!r} is no address to listen on; give a PORT (this machine alone) or HOST:PORT, "
            "e.g. 9400 or 0.0.0.0:9400"
        )
    return MetricsAddress(int(found["port"]), found["six"] or found["host"] or LOOPBACK)
