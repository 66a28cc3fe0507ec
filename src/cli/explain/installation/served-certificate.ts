import { basename, dirname } from "node:path";
import { secretText } from "../../../api/kubernetes.ts";
import type { ClusterClient } from "../../../kube/client.ts";
import { deployments, secrets } from "../../../kube/resources.ts";
import { readable } from "../../shared/reading.ts";
import { certificateFinding } from "./certificates.ts";
import { type Finding, fail, forbidden, skip } from "./finding.ts";

/** A part of Legation that serves by a certificate. */
interface Server {
  readonly namespace: string;
  /** Undefined where it runs outside the cluster. */
  readonly deployment: string | undefined;
  /** Name of the Secret of the certificate that it makes itself. */
  readonly ownSecret: string;
}

/**
 * Judges the certificate of a server, where it makes its own or its Deployment is given files, and reads the PEM of the authority beside
 * it. `remedy`: the step that has the server make another. Rejects with KubeError.
 */
export async function judgeServed(
  host: ClusterClient,
  what: string,
  { namespace, deployment, ownSecret }: Server,
  { now, remedy, signal }: { readonly now: number; readonly remedy: string; readonly signal: AbortSignal },
): Promise<{ readonly finding: Finding; readonly authority: string | undefined }> {
  const ref = { namespace, name: deployment ?? "" };
  const mounted = deployment === undefined ? undefined : await readable(mountedCertificate(host, ref, signal));
  const files = mounted ?? { secret: ownSecret, certificate: "tls.crt", authority: "ca.crt" };
  const { secret: name } = files;
  const none = skip(`${what}: no Secret has it, as with --tls-cert-file; no other place is known here`);
  if (name === undefined) return { finding: none, authority: undefined };
  const subject = `${what} (Secret ${namespace}/${name})`;
  const read = await readable(host.find(secrets, { namespace, name }, { signal }).then((found) => ({ found })));
  if (read === undefined) return { finding: forbidden(`${subject}: you may not read it`), authority: undefined };
  const [certificate, authority] = [files.certificate, files.authority].map((key) => secretText(read.found, key ?? ""));
  const source = `see what makes Secret ${namespace}/${name}`;
  if (certificate === undefined) {
    return { finding: mounted === undefined ? none : fail(`${subject} is missing`, source), authority };
  }
  // Another issuer's file may hold a chain, whose first certificate the authority has not signed.
  const judged = mounted === undefined ? { now, remedy, ...(authority && { authority }) } : { now, remedy: source };
  return { finding: certificateFinding(subject, certificate, judged), authority };
}

/** The certificate that a Deployment is given as files. */
interface MountedCertificate {
  /** Name of the Secret of the files. Undefined if another volume has them. */
  readonly secret: string | undefined;
  readonly certificate: string;
  /** Key of the authority that the webhook writes into its configurations. Undefined if it writes none. */
  readonly authority: string | undefined;
}

/** Reads where a Deployment's certificate is from. Resolves to undefined if it makes its own. Rejects with KubeError. */
async function mountedCertificate(
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
