"""A lease for each kernel: the provisioner that a kernelspec names.

    "metadata": {"kernel_provisioner": {"provisioner_name": "drupe-provisioner", "config": {"profile": "one-gpu"}},
                 "parameters": {"type": "object", "properties": {
                     "profile": {"type": "string", "enum": ["one-gpu", "two-gpus"], "default": "one-gpu"}}}}

The lease begins before the kernel and is held by the kernel's process: it ends with it, even when that is killed. A
restarted kernel keeps its devices. `python -m drupe.hosted kernelspec` writes such a kernelspec.

`metadata.parameters` is the JSON schema of JEP 87. What the user chose, or else the schema's defaults, comes before
`config`, and takes the place of {name} in the kernelspec's argv and env. Launchers that know JEP 87 pass what was
chosen as `custom_kernel_specs`.
"""
import os

from jupyter_client.provisioning import LocalProvisioner
from traitlets import Float, Integer, Unicode

from drupe.hosted.client import BrokerError
from drupe.hosted.session import Session

CHOICES = ("profile", "kind", "devices", "parts", "memory", "seconds")
_TYPES = {"string": str, "integer": int, "number": (int, float), "boolean": bool}


class LeaseProvisioner(LocalProvisioner):
    """Starts a kernel as a process of this machine, with the devices that the broker leases to it."""

    broker = Unicode("", config=True, help="The broker's socket; empty: DRUPE_BROKER, or the usual place.")
    profile = Unicode("", config=True, help="A profile of the broker. Or say what is wanted:")
    kind = Unicode("", config=True, help="cpu, gpu or accelerator; empty: any.")
    devices = Integer(1, config=True, help="How many devices.")
    parts = Integer(0, config=True, help="How many parts of each; 0: whole devices.")
    memory = Integer(0, config=True, help="Bytes of each device's memory; 0: all.")
    seconds = Float(0, config=True, help="The lease's time; 0: what the profile and the quota allow.")
    wait_seconds = Float(300, config=True, help="How long a kernel waits for its devices; 0: not at all.")

    _session = None  # while there is a lease

    # --- Starting ----------------------------------------------------------------------------------------------

    async def pre_launch(self, **kwargs):
        chosen = parameters(self.kernel_spec.metadata.get("parameters"), kwargs.pop("custom_kernel_specs", None))
        kwargs = await super().pre_launch(**kwargs)
        want = {name: getattr(self, name) for name in CHOICES}
        want.update((name, value) for name, value in chosen.items() if name in want)
        if self._session is not None:
            await self._resume()
        if self._session is None:
            await self._ask(want)
        kwargs["cmd"] = [fill(text, chosen) for text in kwargs["cmd"]]
        env = kwargs["env"]
        for name, text in self.kernel_spec.env.items():
            env[name] = fill(env.get(name, text), chosen)
        env.update(self._session.lease.env)
        env["DRUPE_BROKER"] = self._session.broker.path
        if not kwargs.get("independent"):
            # A kernel whose server is killed before it looks for it would keep its lease for ever.
            env["DRUPE_LOCAL_PARENT"] = str(os.getpid())
        return kwargs

    def _waiting(self, position):
        self.log.warning("Kernel %s waits for a device, at most %g s: number %d in the queue", self.kernel_id,
                         self.wait_seconds, position)

    async def _resume(self):
        """A kernel is started again. It may have parked, and its devices be others now, or another's."""
        try:
            await self._session.resume(self._waiting, self.wait_seconds)
        except BrokerError as error:
            await self._give_back()
            if error.code != "unknown":
                raise RuntimeError(f"This kernel got no device. {error}") from error

    async def _ask(self, want):
        """Lease; this process holds it until the kernel runs."""
        if want["profile"]:
            want = {"profile": want["profile"], "seconds": want["seconds"]}
        session = Session(self.broker or None)
        try:
            want = {name: value for name, value in want.items() if value}
            lease = await session.ask(self._waiting, label=f"kernel {self.kernel_id}"[:60], wait=self.wait_seconds > 0,
                                      timeout=self.wait_seconds, **want)
        except BrokerError as error:
            session.broker.close()
            raise RuntimeError(f"This kernel got no device. {error}") from error
        self._session = session
        self.log.info("Kernel %s has lease %s: %s", self.kernel_id, lease.id, lease.title)

    async def launch_kernel(self, cmd, **kwargs):
        try:
            info = await super().launch_kernel(cmd, **kwargs)
        except BaseException:
            await self._give_back()
            raise
        try:
            await self._session.adopt(self.process.pid)
        except BaseException as error:
            # Without a holder that ends with the kernel nothing would return the lease; nobody waits for a kernel whose
            # start was cancelled.
            await super().kill()
            await self._give_back()
            if isinstance(error, BrokerError):
                raise RuntimeError(f"The kernel cannot hold its lease. {error}") from error
            raise
        return info

    # --- Ending ------------------------------------------------------------------------------------------------

    async def shutdown_requested(self, restart=False):
        await super().shutdown_requested(restart=restart)
        await self._keep(restart)

    async def kill(self, restart=False):
        await self._keep(restart)
        await super().kill(restart=restart)

    async def terminate(self, restart=False):
        await self._keep(restart)
        await super().terminate(restart=restart)

    async def _keep(self, restart):
        """Hold the lease in place of a kernel that is started again. A kernel that died has lost it: ask anew."""
        if self._session is None or not restart:
            return
        try:
            await self._session.adopt(os.getpid())
        except BrokerError as error:
            self.log.info("The lease ended with kernel %s: %s", self.kernel_id, error)
            await self._give_back()  # a broker that is away may have made it this process's

    async def cleanup(self, restart=False):
        await super().cleanup(restart=restart)
        if restart:
            # The manager of a kernel that died comes here without a word before.
            await self._keep(restart)
        else:
            await self._give_back()

    async def _give_back(self):
        session, self._session = self._session, None
        if session is not None:
            error = await session.end()
            if error is not None:
                self.log.debug("The lease of kernel %s was not returned: %s", self.kernel_id, error)

    async def get_provisioner_info(self):
        info = await super().get_provisioner_info()
        return {**info, "lease": self._session.lease.id if self._session else None}


# --- Parameters ------------------------------------------------------------------------------------------------


def parameters(schema, chosen=None):
    """The values of a kernelspec's parameters: those that were chosen, checked, and defaults for the others."""
    properties = (schema or {}).get("properties", {})
    values = {name: one["default"] for name, one in properties.items() if "default" in one}
    for name, value in (chosen or {}).items():
        if name not in properties:
            raise ValueError(f"this kernel has no parameter {name!r}; it has {', '.join(properties) or 'none'}")
        check(name, value, properties[name])
        values[name] = value
    return values


def check(name, value, schema):
    """Raises ValueError when the value is none that the schema of a parameter allows."""
    kind = schema.get("type")
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if kind in _TYPES and (not isinstance(value, _TYPES[kind]) or (kind in ("integer", "number") and not number)):
        raise ValueError(f"the parameter {name!r} is of type {kind}, not {value!r}")
    if "enum" in schema and value not in schema["enum"]:
        raise ValueError(f"the parameter {name!r} is one of {', '.join(map(str, schema['enum']))}, not {value!r}")
    if number and not schema.get("minimum", value) <= value <= schema.get("maximum", value):
        raise ValueError(f"the parameter {name!r} is from {schema.get('minimum', '-inf')} to "
                         f"{schema.get('maximum', 'inf')}, not {value}")


def fill(text, values):
    """Put the values of parameters where the text has {name}; other braces stay."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", str(value))
    return text
