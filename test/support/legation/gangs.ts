import { expect, onTestFinished } from "vitest";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import type { KubeEvent, Pod, PodSpec, Stored } from "../../../src/api/kubernetes.ts";
import { clusters as clusterResource } from "../../../src/api/resources.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { apiVersionOf, events, kindName, pods, type Resource } from "../../../src/kube/resources.ts";
import { whyNotPlaced } from "../../../src/pods/proxy-conditions.ts";
import { createKwokNodes } from "../clusters/nodes.ts";
import { startClusters } from "../clusters/start.ts";
import type { ClusterOptions, Clusters } from "../clusters/types.ts";
import { delegatedPod, numbered } from "../delegated/pods.ts";
import { afterFile } from "../harness/after-file.ts";
import { clientOf } from "../harness/clients.ts";
import { freshNamespace } from "../harness/namespace.ts";
import { inPhase, podsOf } from "../harness/pods-of.ts";
import { scheduleTimeout } from "../harness/schedule-timeout.ts";
import { eventuallyPasses } from "../harness/wait.ts";
import { legation } from "./cli.ts";
import { type Legation, startLegation } from "./start.ts";

/** Pods of each gang. */
export const GANG_SIZE = 12;
export const PATIENT = { timeoutMs: 120_000, intervalMs: 300 };
const NAME = "gang";
const NAMES = ["host", "west", "east"] as const;
// Two nodes of four cores in west, two of eight in east.
const NODE_CPU = { host: undefined, west: "4", east: "8" } as const;
const WEST_FIRST = JSON.stringify({
  preferredDuringSchedulingIgnoredDuringExecution: [
    { weight: 100, preference: { matchFields: [{ key: "metadata.name", operator: "In", values: ["west"] }] } },
  ],
});

/** How pods become a gang. */
export interface GangKind {
  /** The type of the objects that name gangs. */
  readonly type: Resource<AnyObject>;
  /** Spec of such an object. */
  readonly spec: object;
  /** Label, or field of the spec, by which a pod names it. */
  member(name: string): { readonly labels?: Readonly<Record<string, string>>; readonly spec?: Partial<PodSpec> };
  /** More flags of each cluster. */
  readonly options?: ClusterOptions;
  /** Prepares each cluster before Legation is there. */
  readonly prepare?: (clusters: Clusters) => Promise<void>;
}

/** A host with two members of different size, of which pods prefer the smaller, and the type of a gang. */
export class GangScene {
  readonly clusters: Clusters;
  readonly running: Legation;
  readonly host: ClusterClient;
  readonly west: ClusterClient;
  readonly east: ClusterClient;
  readonly #kind: GangKind;

  private constructor(kind: GangKind, clusters: Clusters, running: Legation) {
    this.#kind = kind;
    this.clusters = clusters;
    this.running = running;
    const client = (name: string): ClusterClient => {
      const made = clientOf(clusters.get(name));
      afterFile(() => made.close());
      return made;
    };
    this.host = client("host");
    this.west = client("west");
    this.east = client("east");
  }

  static async start(kind: GangKind): Promise<GangScene> {
    const options = NAMES.map((name) => {
      const cpu = NODE_CPU[name];
      return [name, { ...kind.options, nodes: cpu === undefined ? [] : [{ count: 2, cpu }] }] as const;
    });
    const clusters = await startClusters({ names: NAMES, clusters: Object.fromEntries(options) });
    afterFile(() => clusters.stop());
    await kind.prepare?.(clusters);
    const [host, west, east] = [clusters.get("host"), clusters.get("west"), clusters.get("east")];
    const running = await startLegation({ host, members: { west, east }, restart: true });
    afterFile(() => running.stop());
    const scene = new GangScene(kind, clusters, running);
    const flags = [`--kubeconfig=${host.kubeconfig}`, `--types=${kindName(kind.type)}`];
    await legation(["install", ...flags]);
    for (const { name, kubeconfig } of [west, east]) {
      await legation(["join", name, `--member-kubeconfig=${kubeconfig}`, ...flags]);
    }
    await scheduleTimeout(scene.host, 5);
    return scene;
  }

  freshNamespace(): Promise<string> {
    return freshNamespace(this.clusters.all, {
      prefix: "gangs",
      labels: { "legation.dev/delegation": "annotated" },
      annotations: { "legation.dev/cluster-affinity": WEST_FIRST },
      onFinished: onTestFinished,
    });
  }

  /** Creates the gang's object and its pods. */
  async create(
    namespace: string,
    cpu: string,
    annotations: Readonly<Record<string, string>> = {},
    names: readonly string[] = numbered("worker", GANG_SIZE),
  ): Promise<void> {
    const { type, spec } = this.#kind;
    const metadata = { namespace, name: NAME };
    await this.host.create(type, { apiVersion: apiVersionOf(type), kind: type.kind, metadata, spec });
    await this.createPods(namespace, names, cpu, annotations);
  }

  async createPods(
    namespace: string,
    names: readonly string[],
    cpu: string,
    annotations: Readonly<Record<string, string>> = {},
  ): Promise<void> {
    const { labels = {}, spec } = this.#kind.member(NAME);
    const containers = [{ name: "main", image: "work:1", resources: { requests: { cpu } } }];
    const pod = (name: string): Pod =>
      delegatedPod(namespace, name, { annotations, labels, spec: { ...spec, containers } });
    await Promise.all(names.map((name) => this.host.create(pods, pod(name))));
  }

  /** Returns the status that the host's object has. */
  async status(namespace: string): Promise<unknown> {
    return (await this.host.get(this.#kind.type, { namespace, name: NAME })).status;
  }

  /** Waits until all pods of the gang run, and returns the nodes of their proxies. */
  async nodes(namespace: string): Promise<Set<string | undefined>> {
    let nodes = new Set<string | undefined>();
    await eventuallyPasses(async () => {
      const running = (await podsOf(this.host, namespace)).filter(inPhase("Running"));
      expect(running).toHaveLength(GANG_SIZE);
      nodes = new Set(running.map(({ spec }) => spec?.nodeName));
    }, PATIENT);
    return nodes;
  }

  /** Returns the reasons for which the pods wait. */
  async reasons(namespace: string): Promise<Set<string | undefined>> {
    return new Set((await podsOf(this.host, namespace)).map((pod: Stored<Pod>) => whyNotPlaced(pod)?.message));
  }

  /** Adds nodes to a member, and waits until its Cluster has the sum of their cores. */
  async addNodes(
    member: "west" | "east",
    name: string,
    nodes: { readonly count: number; readonly cpu: string },
  ): Promise<void> {
    const before = await this.#cores(member);
    await createKwokNodes(this.clusters.get(member), name, [nodes]);
    const sum = before + nodes.count * Number(nodes.cpu);
    await eventuallyPasses(async () => expect(await this.#cores(member)).toBe(sum), PATIENT);
  }

  /** Returns how many pods the scheduler of west found no node for. */
  async failedInWest(namespace: string): Promise<number> {
    const { items } = await this.west.list(events, { namespace });
    const failed = items.filter(({ reason }: Stored<KubeEvent>) => reason === "FailedScheduling");
    return new Set(failed.map(({ involvedObject }) => involvedObject?.name)).size;
  }

  /** Returns how many pods are told that a member refuses to delete them. */
  async refusedDeletions(namespace: string): Promise<number> {
    const all = await podsOf(this.host, namespace);
    return all.filter(({ status }) => JSON.stringify(status?.conditions ?? []).includes("DeletionRefused")).length;
  }

  async #cores(member: string): Promise<number> {
    const { status } = await this.host.get(clusterResource, { name: member });
    return Number(status?.allocatable?.cpu);
  }
}
