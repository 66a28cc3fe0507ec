import { API_SERVICE, apiServices } from "../../../access/api-service.ts";
import { ACCESS_CERTIFICATE_SECRET } from "../../../access/certificate.ts";
import { ACCESS_NAMESPACE } from "../../../api/access.ts";
import type { Cluster } from "../../../api/cluster.ts";
import { HUB_SECRET, SYSTEM_NAMESPACE } from "../../../api/keys.ts";
import { type Stored, secretText } from "../../../api/kubernetes.ts";
import { readAuthorities, trusted } from "../../../controllers/agents/authority.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { secrets } from "../../../kube/resources.ts";
import { readable } from "../../shared/reading.ts";
import { authoritiesFinding, certificateFinding } from "./certificates.ts";
import { type Finding, fail, forbidden, ok, skip } from "./finding.ts";
import { mountedCertificate } from "./mounted-certificate.ts";

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
  const { namespace } = ACCESS_CERTIFICATE_SECRET;
  const mounted = await readable(mountedCertificate(host, { namespace, name: "legation-access" }, signal));
  const { secret: name, certificate: key } = mounted ?? {
    secret: ACCESS_CERTIFICATE_SECRET.name,
    certificate: "tls.crt",
  };
  if (name === undefined) {
    return [
      state,
      skip("certificate of `legation access`: no Secret has it, as with --tls-cert-file; no other place is known here"),
    ];
  }
  const secret = await readable(host.find(secrets, { namespace, name }, { signal }).then((read) => ({ read })));
  const subject = `certificate of \`legation access\` (Secret ${namespace}/${name})`;
  if (secret === undefined) return [state, forbidden(`${subject}: you may not read it`)];
  const certificate = secretText(secret.read, key);
  const source = `see what makes Secret ${namespace}/${name}`;
  if (certificate === undefined)
    return mounted === undefined ? [state] : [state, fail(`${subject} is missing`, source)];
  const remedy = mounted === undefined ? restart : source;
  return [state, certificateFinding(subject, certificate, { now, remedy })];
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
