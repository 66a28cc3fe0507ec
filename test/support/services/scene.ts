import type { EndpointSlice, KubeEvent, KubeObject, Pod, Service, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { endpointSlices, events, pods, type Resource, services } from "../../../src/kube/resources.ts";
import { delegatedPod } from "../delegated/pods.ts";
import type { Clients } from "../harness/clients.ts";
import { hostCluster, memberCluster } from "../harness/clusters.ts";
import { freshNamespace } from "../harness/namespace.ts";
import { inPhase, podThat } from "../harness/pods-of.ts";
import { eventually } from "../harness/wait.ts";

/** Copies linger for ten seconds after their last user. */
export const PATIENT = { timeoutMs: 60_000 };

type Labels = Readonly<Record<string, string>>;
type ServiceParts = Partial<NonNullable<Service["spec"]>>;

/** A namespace of a test's own in all clusters, and what tests of Services do in it. */
export class Scene {
  readonly namespace: string;
  readonly #clients: Clients;

  constructor(namespace: string, clients: Clients) {
    this.namespace = namespace;
    this.#clients = clients;
  }

  /** Makes a Service on the host; by default one that selects `app: NAME`. */
  async service(name: string, spec: ServiceParts = {}, metadata: object = {}): Promise<Stored<Service>> {
    return this.#clients.host.create(services, {
      apiVersion: "v1",
      kind: "Service",
      metadata: { name, namespace: this.namespace, ...metadata },
      spec: { selector: { app: name }, ports: [{ port: 80 }], ...spec },
    });
  }

  /** Runs a pod in a member. */
  async run(name: string, labels: Labels = {}, member = "west"): Promise<Stored<Pod>> {
    await this.create(name, labels, member);
    return podThat(this.#clients.host, this.namespace, name, inPhase("Running"), PATIENT);
  }

  async create(name: string, labels: Labels = {}, member = "west"): Promise<void> {
    // A pod that mounts a token costs two writes more, which home-api.test.ts counts.
    const spec = { automountServiceAccountToken: false };
    const pod = delegatedPod(this.namespace, name, { annotations: { "legation.dev/clusters": member }, spec });
    await this.#clients.host.create(pods, { ...pod, metadata: { ...pod.metadata, labels } });
  }

  async end(name: string): Promise<void> {
    await this.#clients.host.delete(pods, { namespace: this.namespace, name }, { gracePeriodSeconds: 0 });
  }

  /** The object in a cluster, when it is there. */
  find<T extends KubeObject>(
    client: ClusterClient,
    resource: Resource<T>,
    name: string,
  ): Promise<Stored<T> | undefined> {
    return client.find(resource, { namespace: this.namespace, name });
  }

  /** Waits for a Service in west that `holds`. */
  async inWest(name: string, holds: (service: Stored<Service>) => boolean = () => true): Promise<Stored<Service>> {
    return eventually(
      async () => {
        const found = await this.find(this.#clients.west, services, name);
        if (found !== undefined && holds(found)) return found;
        throw new Error(`west has ${JSON.stringify(found ?? null)}`);
      },
      { ...PATIENT, what: `Service ${name} as wanted` },
    );
  }

  async goes<T extends KubeObject>(client: ClusterClient, resource: Resource<T>, name: string): Promise<void> {
    const isGone = async (): Promise<boolean> => (await this.find(client, resource, name)) === undefined;
    await eventually(isGone, { ...PATIENT, what: `the end of ${resource.kind} ${name}` });
  }

  /** Addresses of the endpoints of a Service that a cluster's own controller has found. */
  async endpoints(client: ClusterClient, service: string): Promise<string[]> {
    const labelSelector = `kubernetes.io/service-name=${service}`;
    const { items } = await client.list<EndpointSlice>(endpointSlices, { namespace: this.namespace, labelSelector });
    return items.flatMap(({ endpoints }) => (endpoints ?? []).flatMap(({ addresses }) => addresses)).sort();
  }

  /** Waits for an event on an object of the host. */
  async saysOn(kind: string, name: string, text: string): Promise<Stored<KubeEvent>> {
    return eventually(
      async () => {
        const { items } = await this.#clients.host.list(events, { namespace: this.namespace });
        const about = items.filter(
          ({ involvedObject }) => involvedObject.kind === kind && involvedObject.name === name,
        );
        const said = about.find(({ message = "" }) => message.includes(text));
        if (said === undefined) throw new Error(about.map(({ message }) => message).join("\n"));
        return said;
      },
      { ...PATIENT, what: `an event on ${kind} ${name} with ${text}` },
    );
  }
}

/** Makes a scene; it is taken down when `onFinished` says so. */
export async function makeScene(clients: Clients, onFinished?: (cleanUp: () => Promise<void>) => void): Promise<Scene> {
  const everywhere = [hostCluster(), memberCluster("west"), memberCluster("east")];
  const labels = { "legation.dev/delegation": "annotated" };
  const options = { prefix: "services", labels, deleted: true, ...(onFinished === undefined ? {} : { onFinished }) };
  return new Scene(await freshNamespace(everywhere, options), clients);
}
