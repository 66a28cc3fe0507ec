"""A user of JupyterHub: starts a notebook server, and runs code in it by a WebSocket through the hub's proxy."""

import json
import os
import sys
import time

import requests
import websocket

hub, user, token = sys.argv[1], sys.argv[2], os.environ["TOKEN"]
session = requests.Session()
session.headers["Authorization"] = f"token {token}"


def ask(method, path, **body):
    answer = session.request(method, f"http://{hub}{path}", timeout=60, **body)
    answer.raise_for_status()
    return answer.json() if answer.content else None


ask("POST", f"/hub/api/users/{user}")
ask("POST", f"/hub/api/users/{user}/server")
while not ask("GET", f"/hub/api/users/{user}")["servers"].get("", {}).get("ready"):
    time.sleep(1)
print("server ready")
kernel = ask("POST", f"/user/{user}/api/kernels", json={"name": "python3"})["id"]
channels = websocket.create_connection(
    f"ws://{hub}/user/{user}/api/kernels/{kernel}/channels", header=[f"Authorization: token {token}"], timeout=120
)
header = {"msg_id": "1", "msg_type": "execute_request", "username": user, "session": "1", "version": "5.3"}
content = {"code": "import socket; print(6 * 7, 'on', socket.gethostname())", "silent": False}
request = {"channel": "shell", "header": header, "parent_header": {}, "metadata": {}, "content": content}
channels.send(json.dumps(request))
while True:
    message = json.loads(channels.recv())
    if message["msg_type"] == "stream":
        print(message["content"]["text"], end="")
        break
ask("DELETE", f"/hub/api/users/{user}/server")
