import { z } from "zod";
import { GROUP } from "../../api/keys.ts";
import { listInstalled, type Manifest } from "../shared/manifests.ts";
import type { ApplyContext } from "./apply.ts";

const clientConfig = z.looseObject({
  caBundle: z.string().optional(),
  url: z.string().optional(),
  service: z.unknown().optional(),
});
const webhook = z.looseObject({ name: z.string(), clientConfig });
const configuration = z.looseObject({ webhooks: z.array(webhook) });

type Webhook = z.output<typeof webhook>;

/**
 * Prepares the installed webhook configuration for server-side apply, in one write. Does nothing for other manifests. Resolves to
 * true if it created the configuration. Rejects with KubeError.
 *
 * - Adds new webhooks with the caBundle of the others: calls without one fail until the webhook process sets it.
 * - Removes the former target of a webhook that moves: another field manager's would stay, and no API server accepts two targets.
 * - Removes Legation's former webhooks, since server-side apply keeps those of other field managers.
 */
export async function prepareWebhooks(
  manifest: Manifest,
  { client, discovery, signal }: ApplyContext,
): Promise<boolean> {
  const wanted = configuration.safeParse(manifest).data?.webhooks;
  if (wanted === undefined) return false;
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const ref = { name: manifest.metadata.name };
  const installed = await client.find(resource, ref, { signal });
  const others = installed === undefined ? await listInstalled(client, resource, signal) : [installed];
  const found = others.flatMap((other) => configuration.safeParse(other).data?.webhooks ?? []);
  const [caBundle] = found.flatMap(({ clientConfig }) => clientConfig.caBundle ?? []);
  const trusting = (each: Webhook): object[] =>
    caBundle === undefined ? [] : [{ ...each, clientConfig: { ...each.clientConfig, caBundle } }];
  if (installed === undefined) {
    if (caBundle === undefined) return false;
    const { namespace: _, ...metadata } = manifest.metadata;
    const made = Object.assign({ ...manifest, metadata }, { webhooks: wanted.flatMap(trusting) });
    await client.create(resource, made, { signal });
    return true;
  }
  const names = new Set(wanted.map(({ name }) => name));
  const dropped = found
    .filter(({ name }) => name.endsWith(`.${GROUP}`) && !names.has(name))
    .map(({ name }) => ({ $patch: "delete", name }));
  const changed = wanted.flatMap((each) => {
    const before = found.find(({ name }) => name === each.name);
    return before === undefined ? trusting(each) : moved(before, each);
  });
  const webhooks = [...changed, ...dropped];
  if (webhooks.length > 0) await client.patch(resource, ref, { type: "strategic", body: { webhooks } }, { signal });
  return false;
}

function moved(before: Webhook, { name, clientConfig: { url, service } }: Webhook): object[] {
  const former = url === undefined ? "url" : "service";
  if (before.clientConfig[former] === undefined) return [];
  return [{ name, clientConfig: { url, service, [former]: null } }];
}
