import { API_SERVICE, apiServices } from "../../../access/api-service.ts";
import { ACCESS_CERTIFICATE_SECRET } from "../../../access/certificate.ts";
import { ACCESS_NAMESPACE } from "../../../api/access.ts";
import type { Cluster } from "../../../api/cluster.ts";
import { HUB_SECRET, SYSTEM_NAMESPACE } from "../../../api/keys.ts";
import type { Stored } from "../../../api/kubernetes.ts";
import { readAuthorities, trusted } from "../../../controllers/agents/authority.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { secrets } from "../../../kube/resources.ts";
import { authoritiesFinding, judgeServed } from "./certificates.ts";
import { type Finding, fail, ok } from "./finding.ts";

/** Checks the access of users to members: the APIService and its certificate. Rejects with KubeError. */
export async function accessFindings(
  host: ClusterClient,
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<readonly Finding[]> {
  const found = await host.find(apiServices, { name: API_SERVICE }, { signal });
  if (found === undefined) return [];
  const restart = `kubectl -n ${ACCESS_NAMESPACE} rollout restart deployment legation-access, or start \`legation access\` where it runs outside`;
  const available = found.status?.conditions?.find(({ type }) => type === "Available");
  const state =
    available?.status === "True"
      ? ok(`APIService ${API_SERVICE} is available`)
      : fail(
          `APIService ${API_SERVICE} is not available: ${available?.message ?? "the API server has not reported on it"}`,
          restart,
        );
  const { namespace, name: ownSecret } = ACCESS_CERTIFICATE_SECRET;
  const server = { namespace, deployment: "legation-access", ownSecret };
  const how = { now, remedy: restart, signal };
  const { finding } = await judgeServed(host, "certificate of `legation access`", server, how);
  return [state, finding];
}

/** Checks the authority of the hub and its agents. Rejects with KubeError. */
export async function hubFindings(
  host: ClusterClient,
  clusters: readonly Stored<Cluster>[],
  { now, signal }: { readonly now: number; readonly signal: AbortSignal },
): Promise<readonly Finding[]> {
  const [behind] = clusters.filter(({ spec }) => spec.agent !== undefined);
  if (behind === undefined) return [];
  const remedy = `legation join ${behind.metadata.name} --agent --hub-address HOST:PORT`;
  const secret = await host.find(secrets, { namespace: SYSTEM_NAMESPACE, name: HUB_SECRET }, { signal });
  const subject = `authority of the hub (Secret ${SYSTEM_NAMESPACE}/${HUB_SECRET})`;
  const authorities = readAuthorities(secret);
  if (authorities === undefined) return [fail(`${subject} is missing`, remedy)];
  return [
    authoritiesFinding(subject, trusted(authorities), { now, remedy }),
    authorities.addresses.length === 0
      ? fail("the hub has no address at which agents find it", remedy)
      : ok(`agents find the hub at ${authorities.addresses.join(", ")}`),
  ];
}
