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
  const wanted = configuration.safeParse(manifest);
  if (!wanted.success) return false;
  const resource = await discovery.get(manifest.apiVersion, manifest.kind);
  const ref = { name: manifest.metadata.name };
  const installed = await client.find(resource, ref, { signal });
  if (installed === undefined) {
    const others = await listInstalled(client, resource, signal);
    const trusted = authorityOf(others.flatMap((other) => configuration.safeParse(other).data?.webhooks ?? []));
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

function moved(before: Webhook, { name, clientConfig: { url, service } }: Webhook): object[] {
  if (url !== undefined && before.clientConfig.service !== undefined) {
    return [{ name, clientConfig: { url, service: null } }];
  }
  if (service !== undefined && before.clientConfig.url !== undefined) {
    return [{ name, clientConfig: { service, url: null } }];
  }
  return [];
}
