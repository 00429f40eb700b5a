"""How busy devices are, as the system tells it: the processor by /proc, GPUs by the kernel's drivers or nvidia-smi."""
import pathlib
import re
import shutil
import subprocess
import time

NVIDIA_SECONDS = 5.0  # between two runs of nvidia-smi, each of which costs the machine some


class Meter:
    """Reads load from one time to the next."""

    def __init__(self, root="/"):
        self.root = pathlib.Path(root)
        self._before = self._processor()
        self._share = None
        self._nvidia, self._asked = {}, 0.0

    def read(self, devices):
        """From 0 to 1 by the devices' ids. None: a processor that was not measured yet. Others are left out."""
        shares = {device["id"]: (device["kind"], self._of(device)) for device in devices}
        return {name: share if share is None else round(share, 2) for name, (kind, share) in shares.items()
                if share is not None or kind == "cpu"}

    def _of(self, device):
        if device.get("kind") == "cpu":
            return self._of_processor()
        for node in device.get("nodes") or []:
            card = re.fullmatch(r"/dev/dri/(card\d+)", node)
            minor = re.fullmatch(r"/dev/nvidia(\d+)", node)
            if card:
                return self._percent(self.root / "sys/class/drm" / card[1] / "device/gpu_busy_percent")
            if minor:
                return self._of_nvidia().get(minor[1])
        return None

    @staticmethod
    def _percent(path):
        try:
            return int(path.read_text()) / 100
        except (OSError, ValueError):
            return None

    def _processor(self):
        """Ticks that were spent, and those of them that were idle."""
        try:
            ticks = [int(text) for text in (self.root / "proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
        except (OSError, ValueError):
            return None
        return sum(ticks), ticks[3] + ticks[4]

    def _of_processor(self):
        now = self._processor()
        if now and self._before and now[0] > self._before[0]:
            self._share = 1 - (now[1] - self._before[1]) / (now[0] - self._before[0])
            self._before = now
        return self._share

    def _of_nvidia(self):
        if time.monotonic() - self._asked > NVIDIA_SECONDS and shutil.which("nvidia-smi"):
            self._asked = time.monotonic()
            try:
                text = subprocess.run(["nvidia-smi", "--query-gpu=index,utilization.gpu",
                                       "--format=csv,noheader,nounits"], capture_output=True, text=True,
                                      timeout=NVIDIA_SECONDS).stdout
            except (OSError, subprocess.SubprocessError):
                text = ""
            rows = [[cell.strip() for cell in line.split(",")] for line in text.splitlines()]
            self._nvidia = {row[0]: int(row[1]) / 100 for row in rows if len(row) == 2 and row[1].isdigit()}
        return self._nvidia
