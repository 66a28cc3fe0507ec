import type { Cluster } from "../../api/cluster.ts";
import { SYSTEM_NAMESPACE, TOKEN_EXPIRES_ANNOTATION, VIRTUAL_NODE_LABEL } from "../../api/keys.ts";
import type { Secret, Stored } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { secrets } from "../../kube/resources.ts";
import { remove } from "../removal.ts";
import { credentialsSecretName } from "./names.ts";

/**
 * The member whose credentials `join` has stored in the Secret; undefined when somebody else made it. Every release's `join` writes
 * both marks. A label alone may be an operator's, and the annotation alone a renewal's: the controller of 0.1.0 wrote it on any Secret.
 * A Secret of another name is a copy.
 */
export function joinedMemberOf({ metadata }: Stored<Secret>): string | undefined {
  const { name, labels = {}, annotations = {} } = metadata;
  const member = TOKEN_EXPIRES_ANNOTATION in annotations ? labels[VIRTUAL_NODE_LABEL] : undefined;
  return member !== undefined && name === credentialsSecretName(member) ? member : undefined;
}

/** Returns why a Secret is not the one that `join` made for the member. Undefined when it is. */
export function whyForeign(secret: Stored<Secret>, member: string): string | undefined {
  if (joinedMemberOf(secret) === member) return undefined;
  const { name, labels = {}, annotations = {} } = secret.metadata;
  if (name !== credentialsSecretName(member)) return `its name is not ${credentialsSecretName(member)}`;
  const lacks = [
    ...(labels[VIRTUAL_NODE_LABEL] === member ? [] : [`no label ${VIRTUAL_NODE_LABEL}=${member}`]),
    ...(TOKEN_EXPIRES_ANNOTATION in annotations ? [] : [`no annotation ${TOKEN_EXPIRES_ANNOTATION}`]),
  ];
  return `it has ${lacks.join(" and ")}`;
}

/** The Secrets that `join` did not make for the member, and why that is known: `Secret member-west: it has no label …`. */
export function foreignCredentials(found: readonly Stored<Secret>[], member: string): readonly string[] {
  return found.flatMap((secret) => {
    const why = whyForeign(secret, member);
    return why === undefined ? [] : [`Secret ${secret.metadata.name}: ${why}`];
  });
}

/** The Secrets on the host that may hold a member's credentials: the one that `join` makes, and the one that its Cluster names. */
export async function findCredentials(
  host: ClusterClient,
  name: string,
  cluster: Stored<Cluster> | undefined,
  signal: AbortSignal,
): Promise<readonly Stored<Secret>[]> {
  const joined = credentialsSecretName(name);
  const names = new Set([joined, cluster?.spec.credentialsSecret.name ?? joined]);
  const found = [...names].map((each) => host.find(secrets, { namespace: SYSTEM_NAMESPACE, name: each }, { signal }));
  return (await Promise.all(found)).filter((each) => each !== undefined);
}

/** Removes a member's credentials as they were found, when `join` made them. Others stay, and are told. */
export async function removeCredentials(
  host: ClusterClient,
  name: string,
  found: readonly Stored<Secret>[],
  { signal, report }: { readonly signal: AbortSignal; readonly report: (line: string) => void },
): Promise<void> {
  for (const secret of found) {
    const { uid, name: secretName } = secret.metadata;
    const what = `${host.cluster}: Secret ${secretName}`;
    const why = whyForeign(secret, name);
    if (why !== undefined) {
      report(
        `${what} stays: ${why}, so it is not as \`legation join ${name}\` makes it; delete it when nothing needs it`,
      );
    } else if (await remove(host, secrets, { namespace: SYSTEM_NAMESPACE, name: secretName }, { uid, signal })) {
      report(`${what} removed`);
    }
  }
}
