"""GPUs of NVIDIA that are divided into MIG instances.

A process sees one instance, the one that CUDA_VISIBLE_DEVICES names by its UUID, so no list of devices has them all.
nvidia-smi -L has.
"""
import re
import subprocess

SECONDS = 60
_GPU = re.compile(r"GPU \d+: (.+) \(UUID: (GPU-[^)]+)\)")
_INSTANCE = re.compile(r"\s+MIG (\S+)\s+Device\s+\d+: \(UUID: (MIG-[^)]+)\)")


def listing():
    """What nvidia-smi lists; nothing where there is none."""
    try:
        return subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, timeout=SECONDS).stdout
    except (OSError, subprocess.SubprocessError):
        return ""


def units(text):
    """(name, UUID) of each instance, and of each GPU that is not divided; nothing where no GPU is."""
    gpus = []
    for line in text.splitlines():
        gpu, instance = _GPU.match(line), _INSTANCE.match(line)
        if gpu:
            gpus.append((*gpu.groups(), []))
        elif instance and gpus:
            gpus[-1][2].append((f"{gpus[-1][0]} MIG {instance[1]}", instance[2]))
    if not any(instances for _name, _uuid, instances in gpus):
        return []
    return [unit for name, uuid, instances in gpus for unit in instances or [(name, uuid)]]
