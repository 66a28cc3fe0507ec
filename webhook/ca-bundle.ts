import type { KubeObject } from "../src/api/kubernetes.ts";
import type { ClusterClient } from "../src/kube/client.ts";
import { clusterScoped, type Resource } from "../src/kube/resources.ts";
import { retryOnConflict } from "../src/kube/retry.ts";
import type { Callers, Trust } from "../src/serving/certificate-keeper.ts";

export interface WebhookEntry {
  readonly name: string;
  readonly clientConfig: {
    readonly caBundle?: string;
    readonly url?: string;
    readonly service?: { readonly namespace: string; readonly name: string };
  };
}

/** The part of a webhook configuration that is read. */
export interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly WebhookEntry[];
}

const GROUP = "admissionregistration.k8s.io";
export const mutatingConfigurations: Resource<WebhookConfiguration> = clusterScoped(
  GROUP,
  "MutatingWebhookConfiguration",
);
const validating: Resource<WebhookConfiguration> = clusterScoped(GROUP, "ValidatingWebhookConfiguration");

/** Webhook configurations of `legation install`. API servers call mutating ones in name order. */
export const CONFIGURATIONS: readonly {
  readonly resource: Resource<WebhookConfiguration>;
  readonly name: string;
}[] = [
  { resource: mutatingConfigurations, name: "legation" },
  { resource: mutatingConfigurations, name: "zz-legation" },
  { resource: validating, name: "legation" },
];

/**
 * Updates the `caBundle` of Legation's webhook configurations where needed. Without `trust` another writer, such as
 * cert-manager's injector, owns it. Rejects with KubeError.
 */
export async function ensureCaBundle(
  client: ClusterClient,
  trust: Trust | undefined,
  signal: AbortSignal,
): Promise<Callers> {
  const found: WebhookEntry[][] = [];
  for (const configuration of CONFIGURATIONS) {
    const entries = await ensureIn(configuration, client, trust, signal);
    if (entries !== undefined) found.push([...entries]);
  }
  return { installed: found.length > 0, hosts: [...new Set(found.flat().flatMap((entry) => hostOf(entry) ?? []))] };
}

/** Returns the entries of a configuration, updated. Undefined if it is not installed. */
function ensureIn(
  { resource, name }: (typeof CONFIGURATIONS)[number],
  client: ClusterClient,
  trust: Trust | undefined,
  signal: AbortSignal,
): Promise<readonly WebhookEntry[] | undefined> {
  const ref = { name };
  return retryOnConflict(async () => {
    const found = await client.find(resource, ref, { signal });
    if (found === undefined) return undefined;
    const { webhooks: entries = [] } = found;
    const stale = trust === undefined ? [] : entries.flatMap((entry) => changeOf(entry, trust));
    if (stale.length === 0) return entries;
    // Merged by name, with resourceVersion: another replica's write must not be lost.
    const body = { metadata: { resourceVersion: found.metadata.resourceVersion }, webhooks: stale };
    await client.patch(resource, ref, { type: "strategic", body }, { signal });
    return entries;
  });
}

/** Returns an entry's update, if it lacks trust. */
function changeOf({ name, clientConfig }: WebhookEntry, trust: Trust): WebhookEntry[] {
  const trusted = Buffer.from(clientConfig.caBundle ?? "", "base64").toString("utf8");
  const caBundle = encodedFor(name, trust(trusted));
  return clientConfig.caBundle === caBundle ? [] : [{ name, clientConfig: { caBundle } }];
}

/**
 * Returns an entry's bundle as base64. API servers share connections among webhooks of one URL and bundle
 * (k8s.io/client-go/transport), so the second call's bundle ends with an empty line: it must not reuse a dead
 * replica's.
 */
function encodedFor(name: string, caBundle: string): string {
  const [webhook = ""] = name.split(".", 1);
  return Buffer.from(webhook.endsWith("-again") ? `${caBundle}\n` : caBundle, "utf8").toString("base64");
}

/** Returns the name that the API server expects in the certificate. */
function hostOf({ clientConfig: { url, service } }: WebhookEntry): string | undefined {
  if (service !== undefined) return `${service.name}.${service.namespace}.svc`;
  const host = URL.parse(url ?? "")?.hostname;
  // URLs put IPv6 addresses in brackets.
  return host?.replace(/^\[(.*)\]$/, "$1");
}
