import { z } from "zod";
import { ACCESS_GROUP, ACCESS_VERSION } from "../api/access.ts";
import type { KubeObject, PodCondition } from "../api/kubernetes.ts";
import type { ClusterClient } from "../kube/client.ts";
import { clusterScoped, type Resource } from "../kube/resources.ts";
import { retryOnConflict } from "../kube/retry.ts";
import type { Callers, Trust } from "../serving/certificate-keeper.ts";

export const API_SERVICE: string = `${ACCESS_VERSION}.${ACCESS_GROUP}`;

/** The part of an APIService that is read. */
interface ApiService extends KubeObject {
  readonly status?: { readonly conditions?: readonly Pick<PodCondition, "type" | "status" | "message">[] };
}

export const apiServices: Resource<ApiService> = clusterScoped("apiregistration.k8s.io", "APIService");

const installed = z.looseObject({
  spec: z.looseObject({
    service: z.looseObject({ namespace: z.string(), name: z.string() }).nullish(),
    caBundle: z.string().nullish(),
  }),
});

/** Updates the `caBundle` of the APIService where needed. Rejects with KubeError. */
export function ensureApiServiceTrust(
  client: ClusterClient,
  trust: Trust | undefined,
  signal: AbortSignal,
): Promise<Callers> {
  const ref = { name: API_SERVICE };
  return retryOnConflict(async () => {
    const found = await client.find(apiServices, ref, { signal });
    const { service, caBundle } = installed.safeParse(found).data?.spec ?? {};
    if (found === undefined || !service) return { installed: false, hosts: [] };
    // The host's API server expects this name in the certificate.
    const callers = { installed: true, hosts: [`${service.name}.${service.namespace}.svc`] };
    if (trust === undefined) return callers;
    const trusted = Buffer.from(caBundle ?? "", "base64").toString("utf8");
    const wanted = Buffer.from(trust(trusted), "utf8").toString("base64");
    if (wanted === caBundle) return callers;
    const body = { metadata: { resourceVersion: found.metadata.resourceVersion }, spec: { caBundle: wanted } };
    await client.patch(apiServices, ref, { type: "merge", body }, { signal });
    return callers;
  });
}
