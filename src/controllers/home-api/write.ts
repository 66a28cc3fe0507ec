import type { Secret, Stored } from "../../api/kubernetes.ts";
import type { Member } from "../../clusters/member.ts";
import { ignoring, isKubeError } from "../../kube/errors.ts";
import { findByList } from "../../kube/list.ts";
import { secrets } from "../../kube/resources.ts";
import { ownerOf } from "../../pods/delegate.ts";

/** Puts back labels that a client removed, as the watch selects by them. Returns why another owner's Secret stays. */
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

export async function replaceApiSecret(
  { client }: Member,
  { metadata = {}, data }: Secret,
  uid: string,
  signal: AbortSignal,
): Promise<undefined> {
  const { namespace = "", name = "", labels, annotations, ownerReferences } = metadata;
  const body = { metadata: { uid, labels, annotations, ownerReferences }, data };
  const patch = client.patch(secrets, { namespace, name }, { type: "merge", body }, { signal, metadataOnly: true });
  // The watch shows whether the Secret was replaced or deleted.
  await ignoring(patch, "Conflict", "NotFound");
}
