import { readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { namespaces, pods } from "../../../src/kube/resources.ts";
import type { Cluster } from "../../support/clusters/types.ts";
import { clientOf } from "../../support/harness/clients.ts";
import { kubectl } from "../../support/harness/kubectl.ts";
import { ROOT } from "../../support/legation/cli.ts";
import { openPage } from "../../support/ui/browser.ts";
import { type Figure, quantile } from "../figures.ts";
import { ownMb, rssMb } from "../process-usage.ts";
import { framesDuring, heapMb } from "./frames.ts";

export interface UiBenchOptions {
  /** A cluster without Legation. */
  readonly host: Cluster;
  /** Path of `kubectl`. */
  readonly kubectl: string;
  /** Node options and script of `legation`. */
  readonly program: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** How many pods change. */
  readonly pods: number;
  /** How many pods the table has for the frames. */
  readonly rows: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

const NAMESPACE = "bench-ui";
const PER_SECOND = 50;
const SECONDS = 60;
const WRITERS = 16;
const MARKER = "aaa-marker";

/** Measures `legation ui` with pods that change, and a table of many rows, in Chromium. */
export async function benchUi(options: UiBenchOptions): Promise<void> {
  const { host, onProgress, onFigure, program, env } = options;
  const client = clientOf(host);
  const tool = { program: options.kubectl };
  try {
    await kubectl(host, ["apply", "--server-side", "-f", join(ROOT, "manifests", "crds")], tool);
    await kubectl(host, ["wait", "--for=condition=Established", "crd", "--all", "--timeout=60s"], tool);
    await client.create(namespaces, { metadata: { name: NAMESPACE } });
    onProgress(`${options.pods} pods`);
    await createPods(client, 0, options.pods);
    const script = join(ROOT, "dist", "src", "cli", "ui", "page", "page.js");
    onFigure({ name: "ui: script", value: readFileSync(script).length / 1e3, unit: "kB", target: { atMost: 300 } });
    const beforeOpening = async (): Promise<void> => sleep(5_000);
    const ui = await openPage(host.kubeconfig, { program, env, beforeOpening });
    try {
      const { page, show, pid, origin } = ui;
      await page.goto(`${origin}/#/pods?sort=Name`);
      await page.reload();
      await page.getByText(`${options.pods.toLocaleString("en-US")} pods`).waitFor();
      const first: unknown = await page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? NaN",
      );
      onFigure({ name: "ui: first view", value: Number(first), unit: "ms", target: { atMost: 1_000 } });
      await show("#/pods?sort=Name");
      onProgress(`${PER_SECOND} changes per second`);
      const { latencies, serverMb } = await changes(client, page, { count: options.pods, pid });
      onFigure({ name: "ui: change to page, median", value: quantile(latencies, 0.5), unit: "ms" });
      const slowest = Math.max(...latencies);
      onFigure({ name: "ui: change to page, slowest", value: slowest, unit: "ms", target: { atMost: 1_000 } });
      onFigure({ name: "ui: page's heap", value: await heapMb(page), unit: "MB", target: { atMost: 150 } });
      onFigure({ name: "ui: server's own memory, without the program's file", value: ownMb(pid), unit: "MB" });
      onFigure({ name: "ui: server's memory", value: serverMb, unit: "MB", target: { atMost: 100 } });
      onProgress(`${options.rows} rows`);
      await createPods(client, options.pods, options.rows);
      await page.getByText(`${options.rows.toLocaleString("en-US")} pods`).waitFor({ timeout: 60_000 });
      await useTable(page, onFigure);
      onFigure({ name: "ui: page's heap with all rows", value: await heapMb(page), unit: "MB" });
      onFigure({ name: "ui: server's memory with all rows", value: rssMb(pid), unit: "MB" });
    } finally {
      await ui.close();
    }
  } finally {
    await client.close();
  }
}

function nameOf(index: number): string {
  return index === 0 ? MARKER : `web-${String(index).padStart(5, "0")}`;
}

async function createPods(client: ClusterClient, from: number, to: number): Promise<void> {
  const indexes = Array.from({ length: to - from }, (_, index) => from + index).values();
  const write = async (): Promise<void> => {
    for (const index of indexes) {
      await client.create(pods, {
        apiVersion: "v1",
        kind: "Pod",
        metadata: {
          namespace: NAMESPACE,
          name: nameOf(index),
          labels: { "legation.dev/proxy": "true", app: "web", "pod-template-hash": "5d4f8c" },
          annotations: { "legation.dev/cluster": index % 3 === 0 ? "east" : "west", "legation.dev/delegate-uid": "u" },
        },
        spec: {
          nodeName: index % 3 === 0 ? "legation-east" : "legation-west",
          schedulerName: "legation",
          containers: [{ name: "main", image: "registry.example/web:1", resources: { requests: { cpu: "100m" } } }],
        },
      });
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, write));
}

/** Changes pods at a rate, and one of them each second by a mark that the page is seen to show. */
async function changes(
  client: ClusterClient,
  page: Page,
  { count, pid }: { readonly count: number; readonly pid: number },
): Promise<{ readonly latencies: readonly number[]; readonly serverMb: number }> {
  const latencies: number[] = [];
  let serverMb = 0;
  const writes: Promise<unknown>[] = [];
  const begin = performance.now();
  for (let index = 1; index <= PER_SECOND * SECONDS; index += 1) {
    await sleep(Math.max(0, begin + (index * 1_000) / PER_SECOND - performance.now()));
    const isMark = index % PER_SECOND === 0;
    const reason = `Mark${index}`;
    const write = setReason(client, isMark ? MARKER : nameOf(1 + (index % (count - 1))), reason);
    writes.push(write);
    if (isMark) {
      const shown = page.getByText(reason, { exact: true }).waitFor();
      writes.push(write.then(async (at) => shown.then(() => latencies.push(performance.now() - at))));
      serverMb = Math.max(serverMb, rssMb(pid));
    }
  }
  await Promise.all(writes);
  return { latencies, serverMb };
}

/** Resolves to when the API server had taken the change. */
async function setReason(client: ClusterClient, name: string, reason: string): Promise<number> {
  const path = `/api/v1/namespaces/${NAMESPACE}/pods/${name}/status`;
  const contentType = "application/merge-patch+json";
  await client.raw({ method: "PATCH", path, contentType, body: { status: { phase: "Running", reason } } });
  return performance.now();
}

/** Scrolls, searches, filters and sorts a full table. */
async function useTable(page: Page, onFigure: UiBenchOptions["onFigure"]): Promise<void> {
  const tell = (name: string, frames: readonly number[], atMost: number): void => {
    onFigure({ name: `ui: ${name}, P95 of frames`, value: quantile(frames, 0.95), unit: "ms" });
    onFigure({ name: `ui: ${name}, longest frame`, value: Math.max(...frames), unit: "ms", target: { atMost } });
  };
  const table = page.getByRole("region", { name: "Pods" });
  await table.hover();
  const scrolled = await framesDuring(page, async () => {
    for (let step = 0; step < 60; step += 1) {
      await page.mouse.wheel(0, 600);
      await sleep(16);
    }
  });
  tell("scrolling", scrolled, 100);
  const search = page.getByRole("searchbox", { name: "Search" });
  const searched = await framesDuring(page, async () => {
    await search.pressSequentially("web-0123", { delay: 60 });
    await search.fill("");
    await sleep(200);
  });
  tell("searching", searched, 100);
  const sorted = await framesDuring(page, async () => {
    for (const column of ["Status", "Member", "Age", "Name"]) {
      await page.getByRole("button", { name: column, exact: true }).click();
      await sleep(150);
    }
    await page.getByLabel("Member").selectOption("no member yet");
    await sleep(150);
    await page.getByLabel("Member").selectOption("every member");
    await sleep(150);
  });
  tell("sorting and filtering", sorted, 200);
}
