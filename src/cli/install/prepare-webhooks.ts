import { z } from "zod";
import { GROUP } from "../../api/keys.ts";
import type { ClusterClient } from "../../kube/client.ts";
import type { Discovery } from "../discovery/discovery.ts";
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
 * Makes an installed configuration ready for the new manifest, in one write. Webhooks that it lacks are added with the
 * authorities that the others trust: applied without, their calls would fail until the webhook has seen them. Where the
 * webhook moves into the cluster or out of it, the old target goes: somebody else's (`kubectl apply -k`) would stay beside
 * the new one, and no API server takes both. Legation's webhooks that the manifest lacks go: those that this function has
 * added would stay, since server-side apply removes what its own field manager has written. Does nothing for other manifests.
 * Rejects with KubeError.
 */
export async function prepareWebhooks(
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
  const known = new Map(found.data.webhooks.map((each) => [each.name, each]));
  const caBundle = found.data.webhooks.flatMap((each) => each.clientConfig.caBundle ?? [])[0];
  const names = new Set(wanted.data.webhooks.map(({ name }) => name));
  const dropped = found.data.webhooks
    .filter(({ name }) => name.endsWith(`.${GROUP}`) && !names.has(name))
    .map(({ name }) => ({ $patch: "delete", name }));
  const changed = wanted.data.webhooks.flatMap((each) => {
    const before = known.get(each.name);
    if (before !== undefined) return moved(before, each);
    return caBundle === undefined ? [] : { ...each, clientConfig: { ...each.clientConfig, caBundle } };
  });
  const webhooks = [...changed, ...dropped];
  if (webhooks.length === 0) return;
  await client.patch(resource, ref, { type: "strategic", body: { webhooks } }, { signal });
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
