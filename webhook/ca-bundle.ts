import type { KubeObject } from "../src/api/kubernetes.ts";
import type { ClusterClient } from "../src/kube/client.ts";
import { isKubeError } from "../src/kube/errors.ts";
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

const mutating: Resource<WebhookConfiguration> = {
  ...admission,
  plural: "mutatingwebhookconfigurations",
  kind: "MutatingWebhookConfiguration",
};
const validating: Resource<WebhookConfiguration> = {
  ...admission,
  plural: "validatingwebhookconfigurations",
  kind: "ValidatingWebhookConfiguration",
};

/** Every webhook configuration that `legation install` makes. API servers call mutating ones in the order of their names. */
const CONFIGURATIONS = [
  { resource: mutating, name: "legation" },
  { resource: mutating, name: "zz-legation" },
  { resource: validating, name: "legation" },
] as const;

/** Who calls the webhook, as the configurations say. */
export interface Callers {
  /** False while no configuration is installed. */
  readonly installed: boolean;
  /** DNS names and addresses that the API server calls: the certificate must be for them. */
  readonly hosts: readonly string[];
}

/** The bundle that an entry must trust, from the one that it trusts: PEM, empty where there is none. */
export type Trust = (trusted: string) => string;

// Replicas that write at the same moment find each other's bundle after one lost race.
const ATTEMPTS = 5;

/**
 * Makes Legation's webhook configurations trust what they must; writes only where they do not. Without `trust` nothing is
 * written: somebody else, such as cert-manager's injector, keeps the bundle. Rejects with KubeError.
 */
export async function ensureCaBundle(
  client: ClusterClient,
  trust: Trust | undefined,
  signal: AbortSignal,
): Promise<Callers> {
  const hosts = new Set<string>();
  let installed = false;
  for (const configuration of CONFIGURATIONS) {
    const entries = await ensureIn(configuration, client, trust, signal);
    installed ||= entries !== undefined;
    for (const host of (entries ?? []).map(hostOf)) if (host !== undefined) hosts.add(host);
  }
  return { installed, hosts: [...hosts] };
}

/** The entries of one configuration, as they were found; undefined: it is not installed. */
async function ensureIn(
  { resource, name }: (typeof CONFIGURATIONS)[number],
  client: ClusterClient,
  trust: Trust | undefined,
  signal: AbortSignal,
): Promise<readonly WebhookEntry[] | undefined> {
  const ref = { name };
  for (let attempt = 1; ; attempt++) {
    const found = await client.find(resource, ref, { signal });
    if (found === undefined) return undefined;
    const { webhooks: entries = [] } = found;
    const stale = trust === undefined ? [] : entries.flatMap((entry) => changeOf(entry, trust));
    if (stale.length === 0) return entries;
    // Merged by name: entries and fields that are not named here stay as they are. What another replica has written in between
    // would be lost.
    const body = { metadata: { resourceVersion: found.metadata.resourceVersion }, webhooks: stale };
    try {
      await client.patch(resource, ref, { type: "strategic", body }, { signal });
      return entries;
    } catch (error) {
      if (!isKubeError(error, "Conflict") || attempt === ATTEMPTS) throw error;
    }
  }
}

/** What an entry lacks; nothing when it trusts what it must. */
function changeOf({ name, clientConfig }: WebhookEntry, trust: Trust): WebhookEntry[] {
  const trusted = Buffer.from(clientConfig.caBundle ?? "", "base64").toString("utf8");
  const caBundle = encodedFor(name, trust(trusted));
  return clientConfig.caBundle === caBundle ? [] : [{ name, clientConfig: { caBundle } }];
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
