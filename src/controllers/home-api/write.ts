import type { Secret, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isKubeError } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { secrets } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";

/**
 * Makes the Secret of a delegate in its member. The watch tells only of what has its labels: one that somebody has taken them off is
 * there all the same, and gets them back. Returns why it was not made when another one has its name. Rejects with
 * KubeError, AlreadyExists when one that had its name has gone meanwhile.
 */
export async function createApiSecret(
  member: Member,
  secret: Secret,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = "", name = "" } = secret.metadata ?? {};
  let there: Stored<Secret> | undefined;
  try {
    // The answer would be the tokens again.
    await member.client.create(secrets, secret, { signal, metadataOnly: true });
    return undefined;
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists")) throw error;
    there = await findByList(member.client, secrets, { namespace, name }, signal);
    // Gone again: the next attempt makes it.
    if (there === undefined) throw error;
  }
  if (ownerOf(there)?.uid !== ownerOf(secret)?.uid) {
    return `Secret ${name} is there already and was not made by Legation for this pod; delete it there`;
  }
  return replaceApiSecret(member, secret, there.metadata.uid, signal);
}

/** Puts new tokens into the Secret of this uid. Rejects with KubeError. */
export async function replaceApiSecret(
  { client }: Member,
  { metadata = {}, data }: Secret,
  uid: string,
  signal: AbortSignal,
): Promise<undefined> {
  const { namespace = "", name = "", labels, annotations, ownerReferences } = metadata;
  const body = { metadata: { uid, labels, annotations, ownerReferences }, data };
  try {
    await client.patch(secrets, { namespace, name }, { type: "merge", body }, { signal, metadataOnly: true });
  } catch (error) {
    // Another by now, or deleted: the watch tells which.
    if (!isKubeError(error, "Conflict", "NotFound")) throw error;
  }
}
