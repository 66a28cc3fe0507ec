import { GROUP, RELAY_ANNOTATION } from "../../../src/api/keys.ts";
import type { KubeObject, Service, Stored } from "../../../src/api/kubernetes.ts";
import { RELAY_NAMESPACE, RELAY_SERVICE } from "../../../src/api/relay.ts";
import { clusters } from "../../../src/api/resources.ts";
import { hasSelector } from "../../../src/copies/services.ts";
import { deployments, endpointSlices, pods, services, statefulSets } from "../../../src/kube/resources.ts";
import { pick } from "../plan.ts";
import type { Scene } from "../scene.ts";
import type { ServiceDeed } from "./plan.ts";
import { HOST_NETWORK, slicesIn } from "./rules.ts";

/** Networks that a member is in, one after the other. */
const NETWORKS = [HOST_NETWORK, HOST_NETWORK, "lab", null];
const RELAY = { namespace: RELAY_NAMESPACE, name: RELAY_SERVICE };

type ServiceSpec = NonNullable<Service["spec"]>;

/** Does what an author would do with Services, an operator with networks, or a client of a member with copied slices. */
export async function actOnServices(
  scene: Scene,
  { deed, number, dice }: { readonly deed: ServiceDeed; readonly number: number; readonly dice: number },
): Promise<void> {
  const { clients, namespace } = scene;
  const { host } = clients;
  const second = (dice * 7) % 1;
  const member = pick(["west", "east"] as const, second);
  const one = async (isOne: (service: Stored<Service>) => boolean): Promise<Stored<Service> | undefined> => {
    const found = (await host.list(services, { namespace })).items.filter(isOne);
    return found.length === 0 ? undefined : pick(found, dice);
  };
  const change = async (service: Stored<Service> | undefined, body: object): Promise<void> => {
    if (service === undefined) return;
    await host.patch(services, { namespace, name: service.metadata.name }, { type: "merge", body });
  };
  const make = async (name: string, spec: ServiceSpec, annotations: Record<string, string> = {}): Promise<void> => {
    await host.create(services, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { namespace, name, annotations },
      spec,
    });
  };
  switch (deed) {
    case "make a Service": {
      const selector = await selectorOf(scene, dice);
      const headless = second < 0.3 ? { clusterIP: "None" } : {};
      return selector && make(`service-${number}`, { selector, ports: portsOf(number), ...headless });
    }
    case "change a Service":
      return change(await one(hasSelector), {
        spec: {
          ports: portsOf(number),
          publishNotReadyAddresses: second < 0.3,
          trafficDistribution: second < 0.5 ? "PreferSameZone" : null,
        },
      });
    case "lead a Service to other pods":
      return change(await one(hasSelector), { spec: { selector: await selectorOf(scene, second) } });
    case "make a Service again, headless or not": {
      const service = await one(hasSelector);
      if (service === undefined) return;
      const { selector, ports, clusterIP } = { ...service.spec };
      await host.delete(services, { namespace, name: service.metadata.name });
      const headless = clusterIP === "None" ? {} : { clusterIP: "None" };
      return make(service.metadata.name, { ...(selector && { selector }), ...(ports && { ports }), ...headless });
    }
    case "delete a Service": {
      const service = await one(() => true);
      if (service !== undefined) await host.delete(services, { namespace, name: service.metadata.name });
      return;
    }
    case "run a pod of the host behind a Service": {
      const service = await one(hasSelector);
      if (service === undefined) return;
      const metadata = { namespace, name: `home-${number}`, labels: service.spec?.selector ?? {} };
      const containers = [{ name: "main", image: "main:1" }];
      await host.create(pods, { apiVersion: "v1", kind: "Pod", metadata, spec: { containers } });
      return;
    }
    case "join a network, or leave it": {
      const body = { spec: { network: pick(NETWORKS, dice) } };
      await host.patch(clusters, { name: member }, { type: "merge", body });
      return;
    }
    case "delete a copied slice in a member":
    case "change a copied slice in a member": {
      const client = clients[member];
      const found = await slicesIn(client, namespace, GROUP);
      if (found.length === 0) return;
      const ref = { namespace, name: pick(found, dice).metadata.name };
      if (deed === "delete a copied slice in a member") await client.delete(endpointSlices, ref);
      else await client.patch(endpointSlices, ref, { type: "merge", body: { endpoints: [] } });
      return;
    }
    case "relay a Service": {
      const service = await one(hasSelector);
      const annotations = { [RELAY_ANNOTATION]: service?.metadata.name ?? "" };
      return service && make(`far-${number}`, { ports: portsOf(number) }, annotations);
    }
    case "relay a Service no more, or again": {
      const service = await one((each) => !hasSelector(each));
      const { [RELAY_ANNOTATION]: relayed } = service?.metadata.annotations ?? {};
      const annotations = { [RELAY_ANNOTATION]: relayed === undefined ? "again" : null };
      return change(service, { metadata: { annotations } });
    }
    case "scale the relay":
      await host.patch(deployments, RELAY, { type: "merge", body: { spec: { replicas: Math.floor(dice * 4) } } });
  }
}

function portsOf(number: number): NonNullable<ServiceSpec["ports"]> {
  const http = { name: "http", port: 80, targetPort: 8000 + (number % 3), protocol: "TCP" };
  return number % 2 === 0 ? [http] : [http, { name: "dns", port: 53, targetPort: 5353, protocol: "UDP" }];
}

/** Returns what selects the pods of a Deployment or StatefulSet; undefined if there is none. */
async function selectorOf(
  { clients: { host }, namespace }: Scene,
  dice: number,
): Promise<Record<string, string> | undefined> {
  const [some, others] = await Promise.all([
    host.list(deployments, { namespace }),
    host.list(statefulSets, { namespace }),
  ]);
  const all: readonly Stored<KubeObject>[] = [...some.items, ...others.items];
  return all.length === 0 ? undefined : { app: pick(all, dice).metadata.name };
}
