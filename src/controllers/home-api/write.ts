import type { Secret, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { isKubeError } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { secrets } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";

/**
 * Creates the Secret of a delegate in its member, or puts back labels that a client removed: the watch selects by them. Returns why if
 * another owner's Secret has its name. Rejects with KubeError; AlreadyExists if a Secret of that name is gone meanwhile.
 */
export async function createApiSecret(
  member: Member,
  secret: Secret,
  signal: AbortSignal,
): Promise<string | undefined> {
  const { namespace = "", name = "" } = secret.metadata ?? {};
  let there: Stored<Secret> | undefined;
  try {
    // The response would carry the tokens.
    await member.client.create(secrets, secret, { signal, metadataOnly: true });
    return undefined;
  } catch (error) {
    if (!isKubeError(error, "AlreadyExists")) throw error;
    there = await findByList(member.client, secrets, { namespace, name }, signal);
    // The Secret is gone again: the next attempt creates it.
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
    // The watch shows whether the Secret was replaced or deleted.
    if (!isKubeError(error, "Conflict", "NotFound")) throw error;
  }
}
