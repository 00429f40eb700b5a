"""`get_ipython().kernel`: what notebooks and libraries expect to find there."""
from drupe import _jkernel

from . import jsontext


class Kernel:
    """The kernel as user code sees it."""

    implementation = "drupe"
    implementation_version = _jkernel.__version__
    iopub_socket = None  # sockets belong to C threads; send_response() ignores what it is given as socket
    shell_stream = None
    eventloop = None

    def __init__(self, server, loop):
        self._server = server
        self.io_loop = loop
        self.shell = None

    @property
    def execution_count(self):
        return self.shell.execution_count if self.shell else 0

    def get_parent(self, channel=None):
        """The request that the caller works for, as a message."""
        parent = _jkernel.cell.get(None)
        if parent is None:
            return {"header": {}, "parent_header": {}, "metadata": {}, "content": {}}
        if parent.message is None:
            header = jsontext.loads(parent.header)
            parent.message = {
                "header": header,
                "msg_id": header.get("msg_id"),
                "msg_type": header.get("msg_type"),
                "parent_header": {},
                "metadata": {},
                "content": {},
            }
        return parent.message

    @property
    def _parent_header(self):
        return self.get_parent()

    def send_response(self, stream, msg_or_type, content=None, ident=None, buffers=None, track=False, header=None,
                      metadata=None, channel=None):
        """Publish a message as an output of the caller's cell."""
        self._server.publish(
            _jkernel.cell.get(None), msg_or_type, jsontext.dumps(content or {}), jsontext.dumps(metadata or {}), buffers
        )

    @property
    def comm_manager(self):
        import comm

        return comm.get_comm_manager()
