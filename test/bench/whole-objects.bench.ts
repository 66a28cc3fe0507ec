import { setTimeout as sleep } from "node:timers/promises";
import { z } from "zod";
import type { AnyObject } from "../../src/api/delegated-type.ts";
import { WHOLE_KEY } from "../../src/api/keys.ts";
import type { ClusterClient } from "../../src/kube/client.ts";
import type { Cluster } from "../support/clusters/types.ts";
import { legation as runLegation } from "../support/legation/cli.ts";
import type { Legation } from "../support/legation/start.ts";
import { WIDGETS, widgetDefinition, widgets } from "../support/legation/widget.ts";
import { clientOf, makeNamespace, removeNamespace } from "./bursts.ts";
import type { Figure } from "./figures.ts";
import { cpuMs, rssMb } from "./process-usage.ts";

export interface WholeObjectsBenchOptions {
  readonly host: Cluster;
  /** By the names of their Clusters. */
  readonly members: Readonly<Record<string, Cluster>>;
  readonly legation: Pick<Legation, "controller">;
  readonly objects: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

/** Requests in flight of the load generator and of the bare loop. */
const WRITERS = 16;
const QUIET_MS = 20_000;
// The namespace's labels for Legation are read within this time.
const SEEN_MS = 2_000;

/** Measures custom resources that all members get beside a loop that applies the same objects to host and members. */
export async function benchWholeObjects(options: WholeObjectsBenchOptions): Promise<void> {
  const { host, members, legation, objects, onProgress, onFigure } = options;
  const hostClient = clientOf(host);
  const memberClients = Object.values(members).map(clientOf);
  const all = [hostClient, ...memberClients];
  const told = (name: string, value: number, unit: string, target?: Figure["target"]): void =>
    onFigure({ name: `${objects} objects: ${name}`, value, unit, ...(target === undefined ? {} : { target }) });
  try {
    onProgress("the type of whole objects");
    await allow(host, members, all);
    onProgress(`${objects} objects: a bare loop`);
    const bare = await makeNamespace(hostClient, false, "objects-bare");
    await Promise.all(memberClients.map((client) => createNamespace(client, bare)));
    const loop = await timed(objects, async (index) => {
      await hostClient.create(widgets, widget(bare, index));
      await Promise.all(memberClients.map((client) => apply(client, widget(bare, index))));
    });
    onProgress("removing them");
    await removeNamespace(all, bare);
    const namespace = await makeNamespace(hostClient, true, "objects-whole");
    await sleep(SEEN_MS);
    onProgress(`${objects} objects: whole`);
    const { pid = 0 } = legation.controller;
    const before = { mb: rssMb(pid), cpuMs: cpuMs(pid) };
    const startedAt = performance.now();
    await timed(objects, (index) => hostClient.create(widgets, widget(namespace, index, { [WHOLE_KEY]: "true" })));
    await Promise.all(memberClients.map((client) => untilThere(client, namespace, objects)));
    const whole = objects / ((performance.now() - startedAt) / 1000);
    told("applied by a bare loop", loop, "/s");
    told("whole, in all members", whole, "/s");
    told("whole / bare loop", whole / loop, "", { atLeast: 0.6 });
    told("memory of the controller for each", ((rssMb(pid) - before.mb) * 1000) / objects, "kB");
    told("processor time of the controller for each", (cpuMs(pid) - before.cpuMs) / objects, "ms");
    onProgress("writes while nothing changes");
    // The last records of members come a second later, and the DelegatedType's counts after five.
    await sleep(QUIET_MS / 2);
    const versions = await versionsOf(all, namespace);
    await sleep(QUIET_MS);
    const changed = (await versionsOf(all, namespace)).filter((version) => !versions.includes(version));
    told(`written within ${QUIET_MS / 1000} s while nothing changes`, changed.length, "", { atMost: 0 });
    await removeNamespace(all, namespace);
  } finally {
    await Promise.all(all.map((client) => client.close()));
  }
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

/** Returns how many a second were made. */
async function timed(count: number, make: (index: number) => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  let next = 0;
  const writer = async (): Promise<void> => {
    while (next < count) await make(next++);
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
  return count / ((performance.now() - startedAt) / 1000);
}

/** The first page of a list, with the number of objects behind it. */
const countedPage = z.object({
  items: z.array(z.unknown()),
  metadata: z.object({ remainingItemCount: z.number().default(0) }),
});

/** Asks for a count only: lists of all objects would take the processor time that is measured. */
async function untilThere(client: ClusterClient, namespace: string, objects: number): Promise<void> {
  const path = `/apis/${widgets.group}/${widgets.version}/namespaces/${namespace}/${widgets.plural}?limit=1`;
  for (;;) {
    const { items, metadata } = countedPage.parse(await client.raw({ method: "GET", path }));
    if (items.length + metadata.remainingItemCount === objects) return;
    await sleep(100);
  }
}

async function versionsOf(all: readonly ClusterClient[], namespace: string): Promise<string[]> {
  const lists = await Promise.all(all.map((client) => client.list(widgets, { namespace })));
  return lists.flatMap(({ items }) => items.map(({ metadata }) => `${metadata.uid}/${metadata.resourceVersion}`));
}
