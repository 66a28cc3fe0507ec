import type { KubeObject } from "../src/api/kubernetes.ts";
import type { ClusterClient } from "../src/kube/client.ts";
import type { Resource } from "../src/kube/resources.ts";

interface WebhookEntry {
  readonly name: string;
  readonly clientConfig: {
    readonly caBundle?: string;
    readonly url?: string;
    readonly service?: { readonly namespace: string; readonly name: string };
  };
}

/** The part of a webhook configuration that is read here. */
interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly WebhookEntry[];
}

const admission = { group: "admissionregistration.k8s.io", version: "v1", namespaced: false } as const;

/** Both webhook configurations that `legation install` makes, under one name. */
const CONFIGURATIONS: readonly Resource<WebhookConfiguration>[] = [
  { ...admission, plural: "mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration" },
  { ...admission, plural: "validatingwebhookconfigurations", kind: "ValidatingWebhookConfiguration" },
];

/** Name of both configurations. */
export const CONFIGURATION_NAME = "legation";

/** Who calls the webhook, as the configurations say. */
export interface Callers {
  /** False while no configuration is installed. */
  readonly installed: boolean;
  /** DNS names and addresses that the API server calls: the certificate must be for them. */
  readonly hosts: readonly string[];
}

/**
 * Makes Legation's webhook configurations trust this bundle; writes only where they do not. Without a bundle nothing is
 * written: somebody else, such as cert-manager's injector, keeps it. Rejects with KubeError.
 */
export async function ensureCaBundle(
  client: ClusterClient,
  caBundle: string | undefined,
  signal: AbortSignal,
): Promise<Callers> {
  const hosts = new Set<string>();
  let installed = false;
  for (const resource of CONFIGURATIONS) {
    const found = await client.find(resource, { name: CONFIGURATION_NAME }, { signal });
    if (found === undefined) continue;
    installed = true;
    const entries = found.webhooks ?? [];
    for (const host of entries.map(hostOf)) if (host !== undefined) hosts.add(host);
    if (caBundle === undefined) continue;
    const wanted = entries.map(({ name }) => ({ name, clientConfig: { caBundle: encodedFor(name, caBundle) } }));
    const stale = wanted.filter((each, at) => entries[at]?.clientConfig.caBundle !== each.clientConfig.caBundle);
    if (stale.length === 0) continue;
    // Merged by name: entries and fields that are not named here stay as they are.
    const body = { webhooks: stale };
    await client.patch(resource, { name: CONFIGURATION_NAME }, { type: "strategic", body }, { signal });
  }
  return { installed, hosts: [...hosts] };
}

/**
 * The bundle as it stands in an entry, base64. An API server has one pool of connections for all webhooks behind one URL that
 * trust the same bytes (k8s.io/client-go/transport): one that is asked once more needs connections of its own, since those of
 * the first may lead to a replica that has just died. So its bundle ends with an empty line.
 */
function encodedFor(name: string, caBundle: string): string {
  const [webhook = ""] = name.split(".", 1);
  return Buffer.from(webhook.endsWith("-again") ? `${caBundle}\n` : caBundle, "utf8").toString("base64");
}

/** The name that the API server expects in the certificate. */
function hostOf({ clientConfig: { url, service } }: WebhookEntry): string | undefined {
  if (service !== undefined) return `${service.name}.${service.namespace}.svc`;
  const host = URL.parse(url ?? "")?.hostname;
  // An IPv6 address stands in brackets in a URL.
  return host?.replace(/^\[(.*)\]$/, "$1");
}
