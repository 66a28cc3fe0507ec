import type { KubeObject } from "../src/api/kubernetes.ts";
import type { ClusterClient } from "../src/kube/client.ts";
import type { Resource } from "../src/kube/resources.ts";

/** The part of a webhook configuration that is read here. */
interface WebhookConfiguration extends KubeObject {
  readonly webhooks?: readonly { readonly name: string; readonly clientConfig: { readonly caBundle?: string } }[];
}

const admission = { group: "admissionregistration.k8s.io", version: "v1", namespaced: false } as const;

/** Both webhook configurations that `legation install` makes, under one name. */
const CONFIGURATIONS: readonly Resource<WebhookConfiguration>[] = [
  { ...admission, plural: "mutatingwebhookconfigurations", kind: "MutatingWebhookConfiguration" },
  { ...admission, plural: "validatingwebhookconfigurations", kind: "ValidatingWebhookConfiguration" },
];

/** Name of both configurations. */
export const CONFIGURATION_NAME = "legation";

/**
 * Makes Legation's webhook configurations trust this bundle; writes only where they do not. Configurations that are not
 * there (not installed yet) are passed over: the next call finds them.
 */
export async function ensureCaBundle(client: ClusterClient, caBundle: string, signal?: AbortSignal): Promise<void> {
  const encoded = Buffer.from(caBundle, "utf8").toString("base64");
  const request = signal === undefined ? {} : { signal };
  for (const resource of CONFIGURATIONS) {
    const found = await client.find(resource, { name: CONFIGURATION_NAME }, request);
    const stale = found?.webhooks?.filter(({ clientConfig }) => clientConfig.caBundle !== encoded) ?? [];
    if (found === undefined || stale.length === 0) continue;
    // Merged by name: entries and fields that are not named here stay as they are.
    const webhooks = stale.map(({ name }) => ({ name, clientConfig: { caBundle: encoded } }));
    const body = { webhooks };
    await client.patch(resource, { name: CONFIGURATION_NAME }, { type: "strategic", body }, request);
  }
}
