import { z } from "zod";
import { ACCESS_GROUP, ACCESS_VERSION } from "../api/access.ts";
import type { KubeObject } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { isKubeError } from "../kube/errors.ts";
import type { Resource } from "../kube/resources.ts";
import type { Callers, Trust } from "../serving/certificate-keeper.ts";

export const API_SERVICE: string = `${ACCESS_VERSION}.${ACCESS_GROUP}`;

export const apiServices: Resource<KubeObject> = {
  group: "apiregistration.k8s.io",
  version: "v1",
  plural: "apiservices",
  kind: "APIService",
  namespaced: false,
};

const installed = z.looseObject({
  spec: z.looseObject({
    service: z.looseObject({ namespace: z.string(), name: z.string() }).nullish(),
    caBundle: z.string().nullish(),
  }),
});

// Replicas that write at once conflict; one lost race shows the other's bundle.
const ATTEMPTS = 5;

/** Updates the `caBundle` of the APIService where needed. Rejects with KubeError. */
export async function ensureApiServiceTrust(
  client: ClusterClient,
  trust: Trust | undefined,
  signal: AbortSignal,
): Promise<Callers> {
  const ref = { name: API_SERVICE };
  for (let attempt = 1; ; attempt += 1) {
    const found = await client.find(apiServices, ref, { signal });
    const { service, caBundle } = installed.safeParse(found).data?.spec ?? {};
    if (found === undefined || !service) return { installed: false, hosts: [] };
    // The host's API server expects this name in the certificate.
    const callers = { installed: true, hosts: [`${service.name}.${service.namespace}.svc`] };
    if (trust === undefined) return callers;
    const wanted = Buffer.from(trust(Buffer.from(caBundle ?? "", "base64").toString("utf8")), "utf8").toString(
      "base64",
    );
    if (wanted === caBundle) return callers;
    const body = { metadata: { resourceVersion: found.metadata.resourceVersion }, spec: { caBundle: wanted } };
    try {
      await client.patch(apiServices, ref, { type: "merge", body }, { signal });
      return callers;
    } catch (error) {
      if (!isKubeError(error, "Conflict") || attempt === ATTEMPTS) throw error;
    }
  }
}
