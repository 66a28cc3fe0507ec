import { basename, dirname } from "node:path";
import type { ClusterClient } from "../../../kube/client.ts";
import { deployments } from "../../../kube/resources.ts";

/** The certificate that a Deployment of Legation is given as files. */
export interface MountedCertificate {
  /** Name of the Secret of the files. Undefined if another volume has them. */
  readonly secret: string | undefined;
  /** Key of the certificate. */
  readonly certificate: string;
  /** Key of the authority that the webhook writes into its configurations. Undefined if it writes none. */
  readonly authority: string | undefined;
}

/** Reads where a Deployment's certificate is from. Resolves to undefined if it makes its own. Rejects with KubeError. */
export async function mountedCertificate(
  host: ClusterClient,
  ref: { readonly namespace: string; readonly name: string },
  signal: AbortSignal,
): Promise<MountedCertificate | undefined> {
  const pod = (await host.find(deployments, ref, { signal }))?.spec?.template.spec;
  const [container] = pod?.containers ?? [];
  const file = (name: string): string | undefined => container?.env?.find((each) => each.name === name)?.value;
  const certificate = file("LEGATION_TLS_CERT_FILE");
  if (certificate === undefined) return undefined;
  const mount = container?.volumeMounts?.find(({ mountPath }) => mountPath === dirname(certificate));
  const secret = pod?.volumes?.find(({ name }) => name === mount?.name)?.secret;
  const authority = file("LEGATION_CA_BUNDLE_FILE");
  return {
    secret: secret?.items === undefined ? secret?.secretName : undefined,
    certificate: basename(certificate),
    authority: authority === undefined ? undefined : basename(authority),
  };
}
