"""KubeSpawner's part of docs/relay.md#jupyterhub: `load_subconfig("jupyterhub.py")`, or as z2jh's `hub.extraConfig`."""

from contextlib import suppress

from kubernetes_asyncio.client.rest import ApiException
from kubespawner.objects import make_owner_reference


async def relay(spawner, pod):
    """Makes the relayed Service of a user's pod, which goes with the pod. `services_enabled` has made the one that it leads to."""
    service = spawner.get_service_manifest(make_owner_reference(spawner.pod_name, pod["metadata"]["uid"]), spawner.port)
    service.metadata.name = f"far-{spawner.pod_name}"
    service.metadata.annotations["legation.dev/relay"] = spawner.pod_name
    service.spec.selector = None
    # That of the user's last pod, while the garbage collector has not removed it.
    with suppress(ApiException):
        await spawner.api.delete_namespaced_service(service.metadata.name, spawner.namespace)
    await spawner.api.create_namespaced_service(spawner.namespace, service)


c = get_config()  # noqa: F821
c.KubeSpawner.services_enabled = True
c.KubeSpawner.after_pod_created_hook = relay
# The hub and its proxy reach the notebook, and the notebook the hub.
c.KubeSpawner.pod_connect_ip = "far-{pod_name}"
c.KubeSpawner.hub_connect_url = "http://far-hub:8081"
