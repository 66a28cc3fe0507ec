import { z } from "zod";
import type { ClusterClient } from "../../kube/client.ts";
import type { Discovery } from "../discovery/discovery.ts";
import type { Manifest } from "../manifests/load.ts";

const webhook = z.looseObject({ name: z.string(), clientConfig: z.looseObject({ caBundle: z.string().optional() }) });
const configuration = z.looseObject({ webhooks: z.array(webhook) });

/**
 * Adds the webhooks that an installed configuration lacks, in one write with the authorities that the others trust: applied without,
 * their calls would fail until the webhook has seen them. Does nothing for other manifests. Rejects with KubeError.
 */
export async function addNewWebhooks(
  client: ClusterClient,
  discovery: Discovery,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<void> {
  const wanted = configuration.safeParse(manifest);
  if (!wanted.success) return;
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const ref = { name: manifest.metadata.name };
  const found = configuration.safeParse(await client.find(resource, ref, { signal }));
  if (!found.success) return;
  const known = new Set(found.data.webhooks.map(({ name }) => name));
  const caBundle = found.data.webhooks.flatMap(({ clientConfig }) => clientConfig.caBundle ?? [])[0];
  const webhooks = wanted.data.webhooks
    .filter(({ name }) => !known.has(name))
    .map((each) => ({ ...each, clientConfig: { ...each.clientConfig, caBundle } }));
  if (caBundle === undefined || webhooks.length === 0) return;
  await client.patch(resource, ref, { type: "strategic", body: { webhooks } }, { signal });
}
