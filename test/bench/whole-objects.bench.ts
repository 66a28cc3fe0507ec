import { setTimeout as sleep } from "node:timers/promises";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { WHOLE_KEY } from "../../src/api/keys.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { legation as runLegation } from "../support/legation/cli.ts";
import type { Legation } from "../support/legation/start.ts";
import { WIDGETS, widgetDefinition, widgets } from "../support/legation/widget.ts";
import { clientOf, countOf, makeNamespace, removeNamespace } from "./bursts.ts";
import type { Figure } from "./figures.ts";
import { differenceOf, rssMb, usageOf } from "./process-usage.ts";

export interface WholeObjectsBenchOptions {
  readonly host: Cluster;
  /** By the names of their Clusters. */
  readonly members: Readonly<Record<string, Cluster>>;
  readonly legation: Pick<Legation, "controller" | "webhook">;
  readonly objects: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

/** `bare`: a loop applies the objects to host and members. `whole`: they are created on the host, and members get them. */
type Way = "bare" | "whole";

/** The cost of a run. */
interface Run {
  readonly ms: number;
  /** Processor time of each group of processes until all clusters have the objects; ms. */
  readonly cpu: Readonly<Record<string, number>>;
  /** Duration until the members' records are written; ms. */
  readonly cpuAtRest: Readonly<Record<string, number>>;
}

/** Requests in flight of the load generator and of the bare loop. */
const WRITERS = 16;
const QUIET_MS = 20_000;
// Records of members wait up to ten seconds for copies.
const RECORDED_MS = 12_000;
// The namespace's labels for Legation are read within this time.
const SEEN_MS = 2_000;
// The garbage collector and the quota controller of each cluster watch a new type after 30 s at most.
const TYPE_SEEN_MS = 40_000;
// Objects of the runs before the measurement: processes that have just started are slower.
const WARM_UP = 200;
// A machine that becomes slower or faster in the meantime favours neither.
const ORDER: readonly Way[] = ["bare", "whole", "whole", "bare"];

/** Measures custom resources that all members get beside a loop that applies the same objects to host and members. */
export async function benchWholeObjects(options: WholeObjectsBenchOptions): Promise<void> {
  const { host, members, legation, objects, onProgress, onFigure } = options;
  const { pid = 0 } = legation.controller;
  const hostClient = clientOf(host);
  const memberClients = Object.values(members).map(clientOf);
  const all = [hostClient, ...memberClients];
  const told = (name: string, value: number, unit: string, target?: Figure["target"]): void =>
    onFigure({ name: `${objects} objects: ${name}`, value, unit, ...(target === undefined ? {} : { target }) });
  const runs: Record<Way, Run[]> = { bare: [], whole: [] };
  const usage = usageOf({ host, members: Object.values(members), legation });
  try {
    onProgress("the type of whole objects");
    await allow(host, members, all);
    await sleep(TYPE_SEEN_MS);
    for (const way of ["bare", "whole"] as const) {
      const namespace = await makeNamespaces(way, all, `objects-warm-up-${way}`);
      await run(way, all, namespace, WARM_UP);
      await remove(all, namespace);
    }
    for (const [index, way] of ORDER.entries()) {
      onProgress(`${objects} objects, run ${index + 1} of ${ORDER.length}: ${way}`);
      const namespace = await makeNamespaces(way, all, `objects-${index + 1}-${way}`);
      const before = { mb: rssMb(pid), cpu: usage(), at: performance.now() };
      await run(way, all, namespace, objects);
      const ms = performance.now() - before.at;
      const cpu = differenceOf(usage(), before.cpu);
      told(`${way}, run ${index + 1}`, objects / (ms / 1000), "/s");
      await sleep(RECORDED_MS);
      const cpuAtRest = differenceOf(usage(), before.cpu);
      if (way === "whole" && runs.whole.length === 0) {
        told("memory of the controller for each", ((rssMb(pid) - before.mb) * 1000) / objects, "kB");
        onProgress("writes while nothing changes");
        const versions = await versionsOf(all, namespace);
        await sleep(QUIET_MS);
        const changed = (await versionsOf(all, namespace)).filter((version) => !versions.includes(version));
        told(`written within ${QUIET_MS / 1000} s while nothing changes`, changed.length, "", { atMost: 0 });
      }
      runs[way].push({ ms, cpu, cpuAtRest });
      onProgress("removing them");
      await remove(all, namespace);
    }
    for (const way of ["bare", "whole"] as const) {
      const done = objects * runs[way].length;
      for (const group of Object.keys(usage())) {
        const total = runs[way].reduce((sum, { cpu }) => sum + (cpu[group] ?? 0), 0);
        told(`processor time for each, ${way}: ${group}`, total / done, "ms");
        const atRest = runs[way].reduce((sum, { cpuAtRest }) => sum + (cpuAtRest[group] ?? 0), 0);
        told(`the same until records are written, ${way}: ${group}`, atRest / done, "ms");
      }
    }
    told("whole / bare loop", msOf(runs.bare) / msOf(runs.whole), "", { atLeast: 0.6 });
  } finally {
    await Promise.all(all.map((client) => client.close()));
  }
}

function msOf(runs: readonly Run[]): number {
  return runs.reduce((total, { ms }) => total + ms, 0);
}

async function makeNamespaces(way: Way, [host, ...members]: readonly ClusterClient[], name: string): Promise<string> {
  if (host === undefined) throw new Error("whole objects need a host");
  await makeNamespace(host, way === "whole", name);
  if (way === "bare") await Promise.all(members.map((client) => createNamespace(client, name)));
  else await sleep(SEEN_MS);
  return name;
}

/** Resolves once all clusters have the objects. */
async function run(
  way: Way,
  [host, ...members]: readonly ClusterClient[],
  namespace: string,
  objects: number,
): Promise<void> {
  const annotations = way === "whole" ? { [WHOLE_KEY]: "true" } : {};
  await inTurns(objects, async (index) => {
    await host?.create(widgets, widget(namespace, index, annotations));
    if (way === "bare") await Promise.all(members.map((client) => apply(client, widget(namespace, index))));
  });
  await Promise.all(members.map((client) => untilThere(client, namespace, objects)));
}

/** The host's namespace goes first: members get a namespace anew as long as the host has objects for it. */
async function remove([host, ...members]: readonly ClusterClient[], namespace: string): Promise<void> {
  if (host !== undefined) await removeNamespace([host], namespace);
  await removeNamespace(members, namespace);
}

async function allow(
  host: Cluster,
  members: Readonly<Record<string, Cluster>>,
  all: readonly ClusterClient[],
): Promise<void> {
  const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  await Promise.all(all.map((client) => client.raw({ method: "POST", path, body: widgetDefinition })));
  await Promise.all(all.map(served));
  for (const [name, { kubeconfig }] of Object.entries(members)) {
    await runLegation([
      "join",
      name,
      `--kubeconfig=${host.kubeconfig}`,
      `--member-kubeconfig=${kubeconfig}`,
      `--types=${WIDGETS}`,
    ]);
  }
  await runLegation(["install", `--kubeconfig=${host.kubeconfig}`, `--types=${WIDGETS}`]);
}

/** Waits until the API server serves the definition. */
async function served(client: ClusterClient): Promise<void> {
  for (;;) {
    try {
      await client.list(widgets, { limit: 1 });
      return;
    } catch {
      await sleep(250);
    }
  }
}

async function createNamespace(client: ClusterClient, name: string): Promise<void> {
  const body = { apiVersion: "v1", kind: "Namespace", metadata: { name } };
  await client.raw({ method: "POST", path: "/api/v1/namespaces", body });
}

function widget(namespace: string, index: number, annotations: Readonly<Record<string, string>> = {}): AnyObject {
  const spec = { size: index, image: "registry.example.com/widget:1", ports: [80, 443], note: "x".repeat(500) };
  return {
    apiVersion: "shop.example.com/v1",
    kind: "Widget",
    metadata: { name: `widget-${index}`, namespace, annotations },
    spec,
  };
}

async function apply(client: ClusterClient, body: AnyObject): Promise<void> {
  const { namespace = "", name = "" } = body.metadata ?? {};
  await client.patch(
    widgets,
    { namespace, name },
    { type: "apply", body },
    { fieldManager: "bench", metadataOnly: true },
  );
}

/** Makes the objects, a fixed number of them at a time. */
async function inTurns(count: number, make: (index: number) => Promise<unknown>): Promise<void> {
  let next = 0;
  const writer = async (): Promise<void> => {
    while (next < count) await make(next++);
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}

async function untilThere(client: ClusterClient, namespace: string, objects: number): Promise<void> {
  while ((await countOf(client, widgets, namespace)) !== objects) await sleep(100);
}

async function versionsOf(all: readonly ClusterClient[], namespace: string): Promise<string[]> {
  const lists = await Promise.all(all.map((client) => client.list(widgets, { namespace })));
  return lists.flatMap(({ items }) => items.map(({ metadata }) => `${metadata.uid}/${metadata.resourceVersion}`));
}
