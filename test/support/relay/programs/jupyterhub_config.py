"""JupyterHub on the host, whose notebooks are pods in a member. Each reaches the other by a relayed Service."""

import os
import sys

scripts = os.path.dirname(sys.executable)
c = get_config()  # noqa: F821

c.JupyterHub.bind_url = "http://:8000"
c.JupyterHub.hub_bind_url = "http://:8081"
c.JupyterHub.db_url = "sqlite:////tmp/hub.sqlite"
c.JupyterHub.cookie_secret_file = "/tmp/cookie"
c.ConfigurableHTTPProxy.command = [f"{scripts}/configurable-http-proxy"]
c.ConfigurableHTTPProxy.pid_file = "/tmp/proxy.pid"
c.JupyterHub.authenticator_class = "dummy"
c.Authenticator.allow_all = True

c.JupyterHub.services = [{"name": "test", "api_token": os.environ["TOKEN"]}]
scopes = ["admin:users", "admin:servers", "access:servers"]
c.JupyterHub.load_roles = [{"name": "test", "services": ["test"], "scopes": scopes}]

c.JupyterHub.spawner_class = "kubespawner.KubeSpawner"
c.KubeSpawner.image = "localhost/busybox:1"
c.KubeSpawner.pod_name_template = "jupyter-{username}"
c.KubeSpawner.extra_annotations = {"legation.dev/delegate": "true"}
load_subconfig("jupyterhub.py", path="/examples")  # noqa: F821
c.KubeSpawner.cmd = [f"{scripts}/jupyterhub-singleuser", "--allow-root", "--ServerApp.root_dir=/tmp"]
c.KubeSpawner.environment = {"HOME": "/tmp", "JUPYTERHUB_SINGLEUSER_APP": "jupyter_server.serverapp.ServerApp"}
c.KubeSpawner.start_timeout = 180
c.KubeSpawner.http_timeout = 180
