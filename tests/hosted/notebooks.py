"""Cells through a server's own interface: REST and a websocket, as a browser uses them."""
import json
import urllib.request

from brokers import PATIENCE


class Notebook:
    """A kernel of a Jupyter server, and what its cells print. `address` is that of the server, with its path."""

    def __init__(self, address, token, name="drupe"):
        import websocket  # the quick tests do without

        self.address, self.token, self.count = address.rstrip("/"), token, 0
        self.kernel = self.rest("api/kernels", {"name": name})["id"]
        self.socket = websocket.create_connection(
            self.address.replace("http", "ws", 1) + f"/api/kernels/{self.kernel}/channels?session_id=test",
            header={"Authorization": f"token {token}"}, timeout=PATIENCE)

    def rest(self, path, body=None):
        request = urllib.request.Request(f"{self.address}/{path}", body and json.dumps(body).encode(),
                                         {"Authorization": f"token {self.token}", "Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())

    def run(self, code):
        """What the cell printed. Its error is one of the test."""
        self.count += 1
        header = {"msg_id": f"cell-{self.count}", "msg_type": "execute_request", "session": "test", "username": "",
                  "date": "2026-01-01T00:00:00Z", "version": "5.4"}
        self.socket.send(json.dumps({"header": header, "parent_header": {}, "metadata": {}, "buffers": [],
                                     "content": {"code": code, "silent": False}, "channel": "shell"}))
        printed, ended = "", set()
        while ended != {"execute_reply", "idle"}:
            message = json.loads(self.socket.recv())
            if message["parent_header"].get("msg_id") != header["msg_id"]:
                continue
            kind, content = message["header"]["msg_type"], message["content"]
            if kind == "stream":
                printed += content["text"]
            elif kind == "execute_reply":
                assert content["status"] == "ok", f"{content.get('ename')}: {content.get('evalue')}"
                ended.add(kind)
            elif kind == "status" and content["execution_state"] == "idle":
                ended.add("idle")
        return printed.strip()

    def close(self):
        self.socket.close()
