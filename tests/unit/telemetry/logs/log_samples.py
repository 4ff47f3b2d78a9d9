"""Small made logs, one of each tool, with what a careful reader takes from them."""

# ruff: noqa: E501 - logs are as wide as their tools write them

from __future__ import annotations

import bisect
import re

from desktop_app.core.telemetry import Reason
from desktop_app.telemetry.logs.kinds import OpenLog, open_log
from desktop_app.telemetry.logs.record import LogRecord
from desktop_app.telemetry.logs.times import DateOrder

MIB = 1024**2
UUIDS = ("GPU-11111111-2222-3333-4444-555555555555", "GPU-aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee")

CSV = f"""timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw.instant [W], temperature.gpu, pstate, clocks.current.sm [MHz]
2026/07/14 09:00:00.250, 0, {UUIDS[0]}, NVIDIA H100 80GB HBM3, 97 %, 41234 MiB, 81559 MiB, 612.34 W, 64, P0, 1980 MHz
2026/07/14 09:00:00.251, 1, {UUIDS[1]}, NVIDIA H100 80GB HBM3, [Unknown Error], 533 MiB, 81559 MiB, ERR!, 37, P0, 345 MHz
2026/07/14 09:00:01.250, 0, {UUIDS[0]}, NVIDIA H100 80GB HBM3, 98 %, 41236 MiB, 81559 MiB, 618.90 W, 65, P0, 1965 MHz
2026/07/14 09:00:01.251, 1, {UUIDS[1]}, NVIDIA H100 80GB HBM3, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]
"""

TWO_ROWS = f"""timestamp, index, uuid, name, utilization.gpu [%], memory.used [MiB], memory.total [MiB], power.draw [W], temperature.gpu
2026/07/30 20:03:00.000, 0, {UUIDS[0]}, NVIDIA GeForce RTX 3090, 90 %, 10000 MiB, 24576 MiB, 300.5 W, 60
2026/07/30 20:03:01.000, 0, {UUIDS[0]}, NVIDIA GeForce RTX 3090, 91 %, 10001 MiB, 24576 MiB, 301.5 W, 61
"""

_XML_CARD = """<gpu id="{bus}"><product_name>{name}</product_name><product_architecture>{architecture}</product_architecture>
<mig_mode><current_mig>{mig}</current_mig></mig_mode><driver_model><current_dm>{model}</current_dm></driver_model>
{instances}<uuid>{uuid}</uuid>
<pci><pci_bus_id>{bus}</pci_bus_id><tx_util>550 KB/s</tx_util><rx_util>1234 KB/s</rx_util></pci>
<fan_speed>41 %</fan_speed><performance_state>P2</performance_state>
<fb_memory_usage><total>12288 MiB</total><reserved>368 MiB</reserved><used>{used} MiB</used></fb_memory_usage>
<utilization><gpu_util>{load}</gpu_util><memory_util>{load}</memory_util></utilization>
<ecc_errors><volatile><sram_uncorrectable>2</sram_uncorrectable><dram_uncorrectable>3</dram_uncorrectable></volatile></ecc_errors>
<temperature><gpu_temp>58 C</gpu_temp><gpu_temp_slow_threshold>95 C</gpu_temp_slow_threshold></temperature>
{power}
<clocks><sm_clock>1807 MHz</sm_clock><mem_clock>7300 MHz</mem_clock></clocks>
<processes><process_info><pid>4242</pid><type>C</type><process_name>python</process_name><used_memory>{process}</used_memory></process_info></processes>
</gpu>
"""


def xml(
    *cards: str, head: str = '<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">\n'
) -> str:
    return (
        f"{head}<nvidia_smi_log>\n<timestamp>Tue Jul 14 09:00:00 2026</timestamp>\n<driver_version>570.124.04</driver_version>\n"
        f"<attached_gpus>{len(cards)}</attached_gpus>\n" + "".join(cards) + "</nvidia_smi_log>\n"
    )


def xml_card(power: str, *, number: int = 0, **changes: str) -> str:
    values = {
        "bus": f"00000000:0{number + 1}:00.0",
        "name": "NVIDIA GeForce RTX 3060",
        "architecture": "Ampere",
        "mig": "N/A",
        "model": "N/A",
        "instances": "",
        "uuid": UUIDS[number],
        "used": "4321",
        "load": "77 %",
        "process": "3999 MiB",
        "power": power,
    }
    return _XML_CARD.format(**{**values, **changes})


POWER_525 = "<power_readings><power_draw>61.25 W</power_draw><enforced_power_limit>170.00 W</enforced_power_limit></power_readings>"
POWER_535 = (
    "<gpu_power_readings><power_draw>61.25 W</power_draw><current_power_limit>170.00 W</current_power_limit></gpu_power_readings>"
    "<module_power_readings><power_draw>N/A</power_draw><current_power_limit>N/A</current_power_limit></module_power_readings>"
)
POWER_570 = (
    "<gpu_power_readings><average_power_draw>61.25 W</average_power_draw><instant_power_draw>63.50 W</instant_power_draw>"
    "<current_power_limit>170.00 W</current_power_limit></gpu_power_readings>"
    "<module_power_readings><average_power_draw>N/A</average_power_draw><instant_power_draw>N/A</instant_power_draw>"
    "<current_power_limit>N/A</current_power_limit></module_power_readings>"
)
XML = xml(xml_card(POWER_570), xml_card(POWER_570, number=1, used="77"))

TABLE = """epoch 3 loss 2.345
Tue Jul 14 09:00:26 2026
+---------------------------------------------------------------------------------------+
| NVIDIA-SMI 535.129.03             Driver Version: 535.129.03   CUDA Version: 12.2     |
|-----------------------------------------+----------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |         Memory-Usage | GPU-Util  Compute M. |
|                                         |                      |               MIG M. |
|=========================================+======================+======================|
|   0  NVIDIA A100-SXM4-40GB          On  | 00000000:07:00.0 Off |                    0 |
| N/A   36C    P0              54W / 400W |   1234MiB / 40960MiB |     37%      Default |
|                                         |                      |             Disabled |
+-----------------------------------------+----------------------+----------------------+
|   1  NVIDIA A100-SXM4-40GB          On  | 00000000:0F:00.0 Off |                   On |
|ERR!   35C    P0             ERR! / ERR! |     16MiB / 40960MiB |     N/A      Default |
|                                         |                      |              Enabled |
+-----------------------------------------+----------------------+----------------------+

+---------------------------------------------------------------------------------------+
| Processes:                                                                            |
|  GPU   GI   CI        PID   Type   Process name                            GPU Memory |
|        ID   ID                                                             Usage      |
|=======================================================================================|
|    0   N/A  N/A    100123      C   /opt/conda/bin/python                     1210MiB |
|    1     7    0    100124      C   python train.py                                N/A |
+---------------------------------------------------------------------------------------+
epoch 4 loss 2.234
"""

QUERY = """
==============NVSMI LOG==============

Timestamp                                 : Tue Jul 14 09:00:27 2026
Driver Version                            : 515.105.01
CUDA Version                              : 11.7

Attached GPUs                             : 1
GPU 00000000:00:1E.0
    Product Name                          : Tesla T4
    Product Architecture                  : Turing
    MIG Mode
        Current                           : N/A
    GPU UUID                              : GPU-11111111-2222-3333-4444-555555555555
    PCI
        Bus Id                            : 00000000:00:1E.0
        GPU Link Info
            PCIe Generation
                Max                       : 3
                Current                   : 1
            Link Width
                Max                       : 16x
                Current                   : 8x
        Tx Throughput                     : 12 KB/s
        Rx Throughput                     : 34 KB/s
    Fan Speed                             : N/A
    Performance State                     : P8
    FB Memory Usage
        Total                             : 15360 MiB
        Reserved                          : 388 MiB
        Used                              : 1032 MiB
    BAR1 Memory Usage
        Total                             : 256 MiB
        Used                              : 5 MiB
    Utilization
        Gpu                               : 71 %
        Memory                            : 23 %
    Temperature
        GPU Current Temp                  : 40 C
        GPU Shutdown Temp                 : 96 C
    Power Readings
        Power Management                  : Supported
        Power Draw                        : 26.78 W
        Enforced Power Limit              : 70.00 W
    Clocks
        SM                                : 585 MHz
        Memory                            : 5000 MHz
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 5762
            Type                          : C
            Name                          : python
            Used GPU Memory               : 1005 MiB
"""

DMON = """#Date       Time        gpu    pwr  gtemp  mtemp     sm    mem    enc    dec   mclk   pclk     fb   bar1  rxpci  txpci  pviol  tviol
#YYYYMMDD   HH:MM:SS    Idx      W      C      C      %      %      %      %    MHz    MHz     MB     MB   MB/s   MB/s      %   bool
 20260714   09:00:00      0    122     51      -     88     41      0      0   9001   2520   1235     17    120     45      3      0
 20260714   09:00:00      1     37     38      -      -      -      0      0    405    210      7      5      0      0      0      0
 20260714   09:00:01      0    124     52      -     91     44      0      0   9001   2520   1236     17    121     46      4      0
"""

PMON = """# gpu         pid   type     sm    mem     fb    command
# Idx           #    C/G      %      %     MB    name
    0      21180     C      45     12    2296    python train.py
    0          -     -      -      -       -    -
    1      21181     C       -      -       -    gpu_burn
"""

ROCM = """{
  "card0": {"Unique ID": "0x2f048617326b1ea", "Temperature (Sensor edge) (C)": "36.0",
   "Temperature (Sensor memory) (C)": "35.0", "sclk clock speed:": "(1725Mhz)", "mclk clock speed:": "(1000Mhz)",
   "pcie clock level": "1 (16.0GT/s x16)", "Fan speed (%)": "21", "Max Graphics Package Power (W)": "225.0",
   "Average Graphics Package Power (W)": "126.0", "GPU use (%)": "63", "GPU memory use (%)": "19",
   "PCI Bus": "0000:63:00.0", "VRAM Total Memory (B)": "34342961152", "VRAM Total Used Memory (B)": "10850304",
   "Card series": "Radeon Instinct MI50 32GB"},
  "card1": {"GPU use (%)": "N/A", "PCI Bus": "0000:64:00.0", "Average Graphics Package Power (W)": "N/A"},
  "system": {"Driver version": "5.9.17"}
}
"""

_DCGM_LABELS = 'gpu="0",UUID="GPU-11111111-2222-3333-4444-555555555555",pci_bus_id="00000000:07:00.0",device="nvidia0",modelName="NVIDIA A100-SXM4-40GB",Hostname="node-1",DCGM_FI_DRIVER_VERSION="535.129.03"'
DCGM = "".join(
    f"# HELP {name} made\n# TYPE {name} gauge\n{name}{{{_DCGM_LABELS}}} {value} 1784019600250\n"
    for name, value in (
        ("DCGM_FI_DEV_GPU_UTIL", "64"),
        ("DCGM_FI_DEV_FB_USED", "20481"),
        ("DCGM_FI_DEV_FB_FREE", "20012"),
        ("DCGM_FI_DEV_POWER_USAGE", "211.305000"),
        ("DCGM_FI_DEV_GPU_TEMP", "48"),
        ("DCGM_FI_DEV_MEMORY_TEMP", "9223372036854775794"),
        ("DCGM_FI_DEV_SM_CLOCK", "1410"),
        ("DCGM_FI_DEV_ENC_UTIL", "2147483635"),
        ("DCGM_FI_PROF_PCIE_RX_BYTES", "73101"),
        ("DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", "0.4123"),
    )
)

EXPORTER = """# TYPE nvidia_smi_clocks_current_sm_clock_hz gauge
nvidia_smi_clocks_current_sm_clock_hz{uuid="11111111-2222-3333-4444-555555555555"} 7.65e+08
nvidia_smi_fan_speed_ratio{uuid="11111111-2222-3333-4444-555555555555"} 0.38
nvidia_smi_gpu_info{compute_cap="7.5",driver_version="610.57.04",index="0",name="NVIDIA GeForce RTX 2080 SUPER",pci_bus_id="00000000:0C:00.0",uuid="11111111-2222-3333-4444-555555555555"} 1
nvidia_smi_memory_used_bytes{uuid="11111111-2222-3333-4444-555555555555"} 2.21249536e+08
nvidia_smi_power_draw_watts{uuid="11111111-2222-3333-4444-555555555555"} 39.17
nvidia_smi_utilization_gpu_ratio{uuid="11111111-2222-3333-4444-555555555555"} 0.07
"""

ALL = {
    "csv": CSV, "xml": XML, "table": TABLE, "query": QUERY, "dmon": DMON, "pmon": PMON, "rocm": ROCM, "dcgm": DCGM,
    "exporter": EXPORTER,
}  # fmt: skip


def read(text: str, *, dates: DateOrder = DateOrder.UNKNOWN) -> tuple[list[LogRecord], OpenLog]:
    log = open_log(text.encode(), dates=dates)
    return list(log.records), log


def value(record: LogRecord, field: str) -> float | Reason | None:
    """The value of a reading, or its reason."""
    reading = record.readings[field]
    return reading.reason if reading.value is None else reading.value


def values(record: LogRecord) -> dict[str, float | Reason | None]:
    return {field: value(record, field) for field in record.readings}


def opened_figures(text: str | bytes) -> set[tuple[object, ...]]:
    """All that a log says, each with its line; empty for one of no kind that is read."""
    try:
        log = open_log(text.encode() if isinstance(text, str) else text)
    except ValueError:
        return set()
    return figures(list(log.records), log)


def figures(records: list[LogRecord], log: OpenLog) -> set[tuple[object, ...]]:
    """Values and identities of records that have been read, and the scalars of ``log``, each with its line."""
    found: set[tuple[object, ...]] = set()
    for record in records:
        card, at = record.card, record.line
        found |= {(at, "card", said) for said in (card.uuid, card.bus_id, card.name, card.index) if said is not None}
        found |= {
            (at, name, reading.value)
            for name, reading in (*record.readings.items(), *record.facts.items())
            if reading.value is not None
        }
        if record.stamp is not None:
            found.add((at, "stamp", record.stamp.seconds))
        for process in record.processes:
            found |= {
                (at, process.pid, said) for said in (process.name, process.memory_bytes.value) if said is not None
            }
            found.add((at, "pid", process.pid))
    training = log.training
    scalars = zip(training.scalar_row, training.scalar_name, training.scalar_value, strict=True)
    found |= {(training.line[row], training.names[name], str(value)) for row, name, value in scalars}
    return found | {(training.line[row], "step", str(step)) for row, step in enumerate(training.step) if step == step}


_NUMBERS = re.compile(r"[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,200}")
# MiB, KiB, GiB, TiB and their decimal brothers; kilo, mega, giga and back; a ratio as percent.
_SCALES = (1.0, 1024.0, 1024.0**2, 1024.0**3, 1024.0**4, 1e3, 1e6, 1e9, 100.0, 1e-3, 1e-6)
_GENERATIONS = {"2.5": 1.0, "5.0": 2.0, "8.0": 3.0, "16.0": 4.0, "32.0": 5.0, "64.0": 6.0}


class _Numbers:
    """The numbers of a text, and whether a value can come from one of them."""

    def __init__(self, text: str) -> None:
        tokens = set(_NUMBERS.findall(text))
        found = {float(token) for token in tokens} | {_GENERATIONS[token] for token in tokens & _GENERATIONS.keys()}
        found |= {float(int(token, 16)) for token in _HEXADECIMAL.findall(text)}  # masks of reasons
        self._sorted = sorted(found)

    def has(self, number: float) -> bool:
        place = bisect.bisect_left(self._sorted, number * (1 - 1e-9))
        return place < len(self._sorted) and self._sorted[place] <= number * (1 + 1e-9)

    def explain(self, number: float) -> bool:
        return any(self.has(number / scale) for scale in _SCALES)

    def explain_sum(self, number: float) -> bool:
        """Two counters together."""
        return any(self.has(number - part) for part in self._sorted)


def strange_values(records: list[LogRecord], text: str) -> list[tuple[str, float]]:
    """Values of an import that no number of the text stands for."""
    numbers = _Numbers(text)
    found = {(field, reading.value) for r in records for field, reading in (*r.readings.items(), *r.facts.items())}
    found |= {("process", process.memory_bytes.value) for r in records for process in r.processes}
    return sorted(
        (field, value)
        for field, value in found
        if value is not None
        and not numbers.explain(value)
        and not (field == "ecc_uncorrected" and numbers.explain_sum(value))
    )
