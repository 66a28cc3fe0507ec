import { z } from "zod";
import { GROUP } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Discovery } from "../discovery/discovery.ts";
import { listInstalled } from "../manifests/installed.ts";
import type { Manifest } from "../manifests/load.ts";

const clientConfig = z.looseObject({
  caBundle: z.string().optional(),
  url: z.string().optional(),
  service: z.unknown().optional(),
});
const webhook = z.looseObject({ name: z.string(), clientConfig });
const configuration = z.looseObject({ webhooks: z.array(webhook) });

type Webhook = z.output<typeof webhook>;

/**
 * Makes the installed configuration ready for the new manifest, in one write. Webhooks that it lacks are added with the
 * authorities that the others trust: applied without, their calls would fail until the webhook has seen them. So it is with a
 * configuration that is missing beside another. Where the webhook moves into the cluster or out of it, the old target goes:
 * somebody else's (`kubectl apply -k`) would stay beside the new one, and no API server takes both. Legation's webhooks that the
 * manifest lacks go: those that this function has added would stay, since server-side apply removes what its own field manager
 * has written. Does nothing for other manifests. Resolves to whether it has made the configuration. Rejects with KubeError.
 */
export async function prepareWebhooks(
  client: ClusterClient,
  discovery: Discovery,
  manifest: Manifest,
  signal: AbortSignal,
): Promise<boolean> {
  const wanted = configuration.safeParse(manifest);
  if (!wanted.success) return false;
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const ref = { name: manifest.metadata.name };
  const installed = await client.find(resource, ref, { signal });
  if (installed === undefined) {
    const others = await listInstalled(client, resource, signal);
    const trusted = others.flatMap(
      (other) => authorityOf(configuration.safeParse(other).data?.webhooks ?? []) ?? [],
    )[0];
    if (trusted === undefined) return false;
    const { namespace: _, ...metadata } = manifest.metadata;
    const webhooks = wanted.data.webhooks.map((each) => trusting(each, trusted));
    await client.create(resource, Object.assign({ ...manifest, metadata }, { webhooks }), { signal });
    return true;
  }
  const found = configuration.safeParse(installed);
  if (!found.success) return false;
  const known = new Map(found.data.webhooks.map((each) => [each.name, each]));
  const caBundle = authorityOf(found.data.webhooks);
  const names = new Set(wanted.data.webhooks.map(({ name }) => name));
  const dropped = found.data.webhooks
    .filter(({ name }) => name.endsWith(`.${GROUP}`) && !names.has(name))
    .map(({ name }) => ({ $patch: "delete", name }));
  const changed = wanted.data.webhooks.flatMap((each) => {
    const before = known.get(each.name);
    if (before !== undefined) return moved(before, each);
    return caBundle === undefined ? [] : trusting(each, caBundle);
  });
  const webhooks = [...changed, ...dropped];
  if (webhooks.length === 0) return false;
  await client.patch(resource, ref, { type: "strategic", body: { webhooks } }, { signal });
  return false;
}

function authorityOf(webhooks: readonly Webhook[]): string | undefined {
  return webhooks.flatMap((each) => each.clientConfig.caBundle ?? [])[0];
}

function trusting(webhook: Webhook, caBundle: string): Webhook {
  return { ...webhook, clientConfig: { ...webhook.clientConfig, caBundle } };
}

/** The change of target; nothing when it stays of its kind. */
function moved(before: Webhook, { name, clientConfig: { url, service } }: Webhook): object[] {
  if (url !== undefined && before.clientConfig.service !== undefined) {
    return [{ name, clientConfig: { url, service: null } }];
  }
  if (service !== undefined && before.clientConfig.url !== undefined) {
    return [{ name, clientConfig: { service, url: null } }];
  }
  return [];
}
