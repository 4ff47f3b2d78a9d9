"""Prometheus text of dcgm-exporter, the exporters around ``nvidia-smi`` and our own: one scrape, or many in a row."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from desktop_app.core.telemetry import Reading, Reason
from desktop_app.telemetry import metric_names
from desktop_app.telemetry.logs import detail_fields
from desktop_app.telemetry.logs import fields as f
from desktop_app.telemetry.logs.log_lines import is_open, numbered_lines
from desktop_app.telemetry.logs.maker import RecordMaker
from desktop_app.telemetry.logs.record import LogRecord, Notes, Stamp
from desktop_app.telemetry.logs.values import Quantity, Rule
from desktop_app.telemetry.plausibility import PERCENT, Range

_SAMPLE: Final = re.compile(
    r"([A-Za-z_:][A-Za-z0-9_:]{0,199})(?:\{(.*)\})?\s+(\S{1,40})(?:\s+(-?[0-9]{1,16}(?:\.[0-9]{1,9})?))?", re.ASCII
)
_LABEL: Final = re.compile(r'\s*([A-Za-z_][A-Za-z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)', re.ASCII)
_OURS: Final = re.compile(r"(?:#\s*(?:HELP|TYPE)\s+)?(DCGM_|nvidia_smi_|nvidia_gpu_|floodmark_)", re.ASCII)
_MOST_CHARACTERS: Final = 8192
_LEAST_MS: Final = 1e11  # of 1973: a smaller time is in seconds, of OpenMetrics whose last line went with a cut


def _of(rule: Rule, quantity: Quantity, unit: str) -> Rule:
    return Rule(rule.field, quantity, rule.allowed, unit, rule.fact)


def _bytes(rule: Rule) -> Rule:
    return _of(rule, Quantity.BYTES, "b")


def _ratio(rule: Rule) -> Rule:
    return _of(rule, Quantity.RATIO, "")


def _hertz(rule: Rule) -> Rule:
    return _of(rule, Quantity.CLOCK, "hz")


_PLAIN_RATE: Final = Range(0, 1e12)
_RX: Final = Rule("pcie_rx_bytes_per_s", Quantity.RATE, _PLAIN_RATE, "b/s")
_TX: Final = Rule("pcie_tx_bytes_per_s", Quantity.RATE, _PLAIN_RATE, "b/s")
# Frame buffer in MiB, PCIe throughput of the driver in KB, of the profiler in bytes a second (dcgm-exporter,
# etc/default-counters.csv).
_DCGM: Final[dict[str, Rule]] = {
    "GPU_UTIL": f.UTILIZATION,
    "MEM_COPY_UTIL": f.MEMORY_UTILIZATION,
    "ENC_UTIL": f.ENCODER,
    "DEC_UTIL": f.DECODER,
    "FB_USED": f.USED,
    "FB_TOTAL": f.TOTAL,
    "FB_RESERVED": f.RESERVED,
    "BAR1_USED": f.BAR1_USED,
    "POWER_USAGE": f.DRAW,
    "POWER_USAGE_INSTANT": f.INSTANT,
    "ENFORCED_POWER_LIMIT": f.LIMIT,
    "GPU_TEMP": f.TEMPERATURE,
    "MEMORY_TEMP": f.MEMORY_TEMPERATURE,
    "SM_CLOCK": f.SM_CLOCK,
    "MEM_CLOCK": f.MEMORY_CLOCK,
    "FAN_SPEED": f.FAN,
    "PSTATE": f.STATE,
    "ECC_DBE_VOL_TOTAL": f.ECC,
    "PCIE_LINK_GEN": f.GENERATION,
    "PCIE_LINK_WIDTH": f.WIDTH,
    "PCIE_RX_THROUGHPUT": f.RX,
    "PCIE_TX_THROUGHPUT": f.TX,
}
_RULES: Final[dict[str, Rule]] = {
    **{f"DCGM_FI_DEV_{name}": rule for name, rule in _DCGM.items()},
    "DCGM_FI_PROF_PCIE_RX_BYTES": _RX,
    "DCGM_FI_PROF_PCIE_TX_BYTES": _TX,
    **{
        metric.name: _ratio(rule) if rule.quantity is Quantity.PERCENT else rule
        for metric in metric_names.DCGM
        if (rule := detail_fields.RULES.get(metric.field)) is not None
    },
    **detail_fields.EXPORTED,
    "nvidia_smi_clocks_current_graphics_clock_hz": _hertz(detail_fields.GRAPHICS_CLOCK),
    "nvidia_smi_clocks_current_video_clock_hz": _hertz(detail_fields.VIDEO_CLOCK),
    "nvidia_smi_utilization_jpeg_ratio": _ratio(detail_fields.JPEG),
    "nvidia_smi_utilization_ofa_ratio": _ratio(detail_fields.OPTICAL_FLOW),
    "nvidia_smi_utilization_gpu_ratio": _ratio(f.UTILIZATION),
    "nvidia_smi_utilization_memory_ratio": _ratio(f.MEMORY_UTILIZATION),
    "nvidia_smi_utilization_encoder_ratio": _ratio(f.ENCODER),
    "nvidia_smi_utilization_decoder_ratio": _ratio(f.DECODER),
    "nvidia_smi_memory_used_bytes": _bytes(f.USED),
    "nvidia_smi_memory_total_bytes": _bytes(f.TOTAL),
    "nvidia_smi_memory_reserved_bytes": _bytes(f.RESERVED),
    "nvidia_smi_power_draw_watts": f.DRAW,
    "nvidia_smi_power_draw_instant_watts": f.INSTANT,
    "nvidia_smi_power_draw_average_watts": f.AVERAGE,
    "nvidia_smi_enforced_power_limit_watts": f.LIMIT,
    "nvidia_smi_power_max_limit_watts": f.POWER_MAX,
    "nvidia_smi_temperature_gpu": f.TEMPERATURE,
    "nvidia_smi_temperature_memory": f.MEMORY_TEMPERATURE,
    "nvidia_smi_clocks_current_sm_clock_hz": _hertz(f.SM_CLOCK),
    "nvidia_smi_clocks_current_memory_clock_hz": _hertz(f.MEMORY_CLOCK),
    "nvidia_smi_clocks_max_sm_clock_hz": _hertz(f.CLOCK_MAX),
    "nvidia_smi_fan_speed_ratio": _ratio(f.FAN),
    "nvidia_smi_pstate": f.STATE,
    "nvidia_smi_pcie_link_gen_current": f.GENERATION,
    "nvidia_smi_pcie_link_width_current": f.WIDTH,
    "nvidia_smi_ecc_errors_uncorrected_volatile_total": f.ECC,
    "nvidia_gpu_duty_cycle": f.UTILIZATION,
    "nvidia_gpu_memory_used_bytes": _bytes(f.USED),
    "nvidia_gpu_memory_total_bytes": _bytes(f.TOTAL),
    "nvidia_gpu_power_usage_milliwatts": _of(f.DRAW, Quantity.POWER, "mw"),
    "nvidia_gpu_temperature_celsius": f.TEMPERATURE,
    "nvidia_gpu_fanspeed_percent": f.FAN,
}
# Ours are in base units (telemetry.metric_names), whatever the field is in.
_THROTTLED: Final = tuple(
    Rule(field, Quantity.PERCENT, PERCENT, "%") for field in ("throttle_power_percent", "throttle_thermal_percent")
)
_FIELD_RULES: Final = {
    rule.field: rule for rule in (*f.QUERY.values(), *_DCGM.values(), *_THROTTLED, *detail_fields.RULES.values())
}


def _of_ours() -> Iterator[tuple[str, Rule]]:
    yield metric_names.OWN_TOTAL, _bytes(f.TOTAL)
    for metric in metric_names.OWN:
        rule = {"pcie_rx_bytes_per_s": _RX, "pcie_tx_bytes_per_s": _TX}.get(
            metric.field, _FIELD_RULES.get(metric.field)
        )
        if rule is None:
            continue
        if rule.quantity is Quantity.PERCENT:
            rule = _ratio(rule)
        elif rule.quantity is Quantity.CLOCK:
            rule = _hertz(rule)
        elif rule.quantity is Quantity.BYTES:
            rule = _bytes(rule)
        yield metric.name, rule


_RULES.update(_of_ours())
_INFO: Final = "nvidia_smi_gpu_info"
_TEXTS: Final = {
    "driver_version": "driver_version",
    "DCGM_FI_DRIVER_VERSION": "driver_version",
    "cuda_version": "cuda_version",
    "compute_cap": "compute_capability",
    "vbios_version": "vbios_version",
    "driver_model_current": "driver_model",
}
_IDENTITY: Final = {
    "uuid": "uuid",
    "UUID": "uuid",
    "pci_bus_id": "bus_id",
    "modelName": "name",
    "name": "name",
    "gpu": "index",
    "index": "index",
    "minor_number": "",  # not the index of any tool
}
# dcgm_fields.h: DCGM_INT32_BLANK, DCGM_INT64_BLANK, DCGM_FP64_BLANK; each with three more kinds counted up from it.
_BLANKS: Final = (0x7FFFFFF0, 0x7FFFFFFFFFFFFFF0, 140737488355328)
_BLANK_REASONS: Final = (Reason.NOT_READ_YET, Reason.UNKNOWN_ERROR, Reason.NOT_SUPPORTED, Reason.NO_PERMISSION)


def is_prometheus(text: str) -> bool:
    """Whether a line of the text is of one of these exporters."""
    return any(_OURS.match(line) for line in text[:1_000_000].splitlines())


def read_prometheus(text: str, notes: Notes) -> Iterator[LogRecord]:
    """A record for each card of each scrape. A sample that comes a second time begins the next scrape."""
    seconds = text.rstrip().endswith("# EOF")  # OpenMetrics: times in seconds, not milliseconds
    scrape = _Scrape(notes, seconds=seconds)
    for number, line in numbered_lines(text):
        body = line.strip()
        if not body or body.startswith("#"):
            continue
        found = _SAMPLE.fullmatch(body) if len(body) <= _MOST_CHARACTERS else None
        if is_open(line):  # the value is whole only where its time follows
            notes.cut(number, line)
            found = _SAMPLE.fullmatch(body[: found.start(4)].rstrip()) if found is not None and found[4] else None
            if found is None:
                continue
        labels = _labels(found[2] or "") if found is not None else None
        if found is None or labels is None:
            notes.leave_out(number, "not a sample of Prometheus", line)
            continue
        if scrape.has(found[1], found[2] or ""):
            yield from scrape.records()
            scrape = _Scrape(notes, seconds=seconds)
        scrape.add(number, found, labels)
    yield from scrape.records()


class _Scrape:
    """The samples of one moment, by card."""

    def __init__(self, notes: Notes, *, seconds: bool) -> None:
        self._notes = notes
        self._seconds = seconds
        self._makers: dict[str, RecordMaker] = {}
        self._seen: set[tuple[str, str]] = set()
        self._reasons: dict[str, dict[int, bool]] = {}  # card → bit of a reason → whether it holds

    def has(self, name: str, labels: str) -> bool:
        return (name, labels) in self._seen

    def add(self, number: int, found: re.Match[str], labels: Mapping[str, str]) -> None:
        name, text, time = found[1], found[3], found[4]
        self._seen.add((name, found[2] or ""))
        if not _OURS.match(name):
            self._notes.leave_out(number, "a metric of another exporter", name)
            return
        key = next((labels[label] for label in ("UUID", "uuid", "gpu", "minor_number") if labels.get(label)), "")
        if not key:
            self._notes.leave_out(number, "a metric of the exporter itself, not of a card", name)
            return
        maker = self._makers.setdefault(key, RecordMaker(number, self._notes))
        if time is not None and maker.stamp is None:
            said = float(time)
            maker.stamp = Stamp(said if self._seconds or abs(said) < _LEAST_MS else said / 1000, zoned=True)
        self._describe(maker, labels, is_info=name == _INFO)
        rule = _RULES.get(name)
        if labels.get("GPU_I_ID"):
            maker.keep(f"{name} [MIG instance {labels['GPU_I_ID']}]", text)
        elif rule is None:
            maker.keep(name, text)
            if name in detail_fields.EXPORTED_BITS and text in ("0", "1"):
                self._reasons.setdefault(key, {})[detail_fields.EXPORTED_BITS[name]] = text == "1"
        else:
            self._number(maker, number, name, text, rule)

    def records(self) -> Iterator[LogRecord]:
        for key, maker in self._makers.items():
            bits = self._reasons.get(key, {})
            if sum(bits) == detail_fields.ALL_EXPORTED_BITS:  # some alone are no mask
                mask = Reading(float(sum(bit for bit, holds in bits.items() if holds)))
                maker.readings.setdefault(detail_fields.REASONS.field, mask)
            yield maker.make()

    def _describe(self, maker: RecordMaker, labels: Mapping[str, str], *, is_info: bool) -> None:
        for label, text in labels.items():
            if _IDENTITY.get(label):
                maker.identify(_IDENTITY[label], text)
            elif label in _TEXTS:
                maker.say(_TEXTS[label], text)
            elif label not in _IDENTITY and (is_info or label not in ("GPU_I_ID", "GPU_I_PROFILE")):
                maker.raw.setdefault(f"label {label}", text)

    def _number(self, maker: RecordMaker, number: int, name: str, text: str, rule: Rule) -> None:
        reason = _blank(text)
        if reason is not None:
            (maker.facts if rule.fact else maker.readings).setdefault(rule.field, Reading(None, reason))
            return
        maker.number(name, text, rule, line=number)


def _labels(text: str) -> dict[str, str] | None:
    """The labels of a sample; ``None`` when they are not well formed."""
    labels: dict[str, str] = {}
    place = 0
    while place < len(text):
        found = _LABEL.match(text, place)
        if found is None or found.end() == place:
            return labels if not text[place:].strip(" ,") else None
        labels[found[1]] = re.sub(r"\\(.)", lambda escaped: "\n" if escaped[1] == "n" else escaped[1], found[2])
        place = found.end()
    return labels


def _blank(text: str) -> Reason | None:
    """Why DCGM has no value, written as a number: blank, not found, not supported, not permitted."""
    try:
        number = int(text) if text.isdecimal() else int(float(text))
    except (ValueError, OverflowError):
        return None
    return next((_BLANK_REASONS[number - blank] for blank in _BLANKS if blank <= number <= blank + 3), None)
