"""A client of a cluster by Python's kubernetes package: creates, lists, watches, patches, executes a command, reads a log and
deletes. Prints what it sees."""

import sys

from kubernetes import client, config, watch
from kubernetes.stream import stream

POD = {
    "metadata": {"name": "talker"},
    "spec": {
        "terminationGracePeriodSeconds": 0,
        "containers": [
            {
                "name": "main",
                "image": "localhost/busybox:1",
                "command": ["sh", "-c", "echo line 1; exec sleep 600"],
            }
        ],
    },
}


def main(kubeconfig: str, namespace: str) -> None:
    config.load_kube_config(kubeconfig)
    core = client.CoreV1Api()
    version = core.list_namespaced_config_map(namespace).metadata.resource_version
    core.create_namespaced_config_map(namespace, {"metadata": {"name": "made"}, "data": {"word": "first"}})
    core.patch_namespaced_config_map("made", namespace, {"data": {"word": "second"}})
    names = [found.metadata.name for found in core.list_namespaced_config_map(namespace).items]
    print("listed", "made" in names)
    core.delete_namespaced_config_map("made", namespace)
    watching = watch.Watch()
    arguments = {"resource_version": version, "timeout_seconds": 60}
    for event in watching.stream(core.list_namespaced_config_map, namespace, **arguments):
        found = event["object"]
        if found.metadata.name != "made":
            continue
        print("watched", event["type"], found.data["word"])
        if event["type"] == "DELETED":
            break
    core.create_namespaced_pod(namespace, POD)
    for event in watching.stream(core.list_namespaced_pod, namespace, timeout_seconds=60):
        if event["object"].status.phase == "Running":
            break
    command = {"command": ["echo", "executed"], "stderr": True, "stdin": False, "stdout": True, "tty": False}
    print(stream(core.connect_get_namespaced_pod_exec, "talker", namespace, **command).strip())
    print("log", core.read_namespaced_pod_log("talker", namespace).strip())
    arguments["resource_version"] = core.list_namespaced_pod(namespace).metadata.resource_version
    core.delete_namespaced_pod("talker", namespace)
    for event in watching.stream(core.list_namespaced_pod, namespace, **arguments):
        if event["type"] == "DELETED":
            print("pod deleted")
            return
    raise SystemExit("the pod was not deleted within a minute")


if __name__ == "__main__":
    main(*sys.argv[1:])
