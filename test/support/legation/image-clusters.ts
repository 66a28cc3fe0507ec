import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startClusters } from "../clusters/start.ts";
import type { Cluster, Clusters } from "../clusters/types.ts";
import { afterFile } from "../harness/after-file.ts";
import { kubectl } from "../harness/kubectl.ts";
import { writeLegationImage } from "./image.ts";

/** Two clusters on real nodes, of which the host's has Legation's image. */
export interface ImageClusters {
  readonly host: Cluster;
  readonly west: Cluster;
  stop(): Promise<void>;
}

/** Builds Legation's image, and starts clusters in which Legation runs from it. */
export async function startImageClusters(): Promise<ImageClusters> {
  const { clusters, stop } = await start(["host", "west"]);
  return { host: clusters.get("host"), west: clusters.get("west"), stop };
}

/** Builds Legation's image, and starts a host with it, which has no member. */
export async function startImageHost(): Promise<Omit<ImageClusters, "west">> {
  const { clusters, stop } = await start(["host"]);
  return { host: clusters.get("host"), stop };
}

/** Starts a host with Legation's image for a file that calls `cleanUpFile` at its end. */
export async function useImageHost(): Promise<Cluster> {
  const { host, stop } = await startImageHost();
  afterFile(stop);
  return host;
}

async function start(names: readonly ["host", ...string[]]): Promise<{
  readonly clusters: Pick<Clusters, "get">;
  readonly stop: () => Promise<void>;
}> {
  const folder = mkdtempSync(join(tmpdir(), "legation-image-"));
  const removeImage = (): void => rmSync(folder, { recursive: true, force: true });
  try {
    const image = join(folder, "legation.tar");
    await writeLegationImage(image);
    const clusters = await startClusters({
      names,
      clusters: {
        ...Object.fromEntries(names.map((name) => [name, { realNode: true }])),
        // Without kube-proxy, the API server finds the webhook's pods by itself.
        host: { realNode: true, images: [image], apiServerFlags: ["--enable-aggregator-routing=true"] },
      },
      onProgress: (line) => process.stderr.write(`clusters: ${line}\n`),
    });
    return {
      clusters,
      stop: async () => {
        await clusters.stop();
        removeImage();
      },
    };
  } catch (error) {
    removeImage();
    throw error;
  }
}

/** Sets the webhooks' timeouts to the maximum: a late response is no refusal. */
export async function waitLongForWebhooks(host: Cluster): Promise<void> {
  const [mutating, validating] = ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"];
  for (const configuration of [`${mutating}/legation`, `${mutating}/zz-legation`, `${validating}/legation`]) {
    const names = await kubectl(host, ["get", configuration, "-o", "jsonpath={.webhooks[*].name}"]);
    const webhooks = names.split(" ").map((name) => ({ name, timeoutSeconds: 30 }));
    await kubectl(host, ["patch", configuration, `--patch=${JSON.stringify({ webhooks })}`]);
  }
}

const NAMESPACES = {
  webhook: "legation-system",
  controller: "legation-system",
  access: "legation-access",
  ui: "legation-ui",
} as const;

/** Waits until Deployments of Legation run as they are written. */
export async function rolledOut(host: Cluster, ...names: readonly (keyof typeof NAMESPACES)[]): Promise<void> {
  for (const name of names) {
    const args = ["-n", NAMESPACES[name], "rollout", "status", `deployment/legation-${name}`, "--timeout=240s"];
    await kubectl(host, args, { timeoutMs: 250_000 });
  }
}
