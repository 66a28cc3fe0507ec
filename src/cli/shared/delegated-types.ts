import type { DelegatedType } from "../../api/delegated-type.ts";
import type { Stored } from "../../api/kubernetes.ts";
import { delegatedTypes } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { Failure } from "./failure.ts";
import { listServed } from "./reading.ts";
import { didYouMean } from "./suggestion.ts";

/** Lists DelegatedTypes, which an installation of an earlier version lacks. */
export async function listDelegatedTypes(
  host: ClusterClient,
  signal: AbortSignal,
): Promise<readonly Stored<DelegatedType>[]> {
  return (await listServed(host, delegatedTypes, signal)) ?? [];
}

/**
 * Returns the type that a user names as for kubectl: plural, singular or kind, also with a dot and the group. Throws a
 * `Failure` if there is none, or more. `otherNames`: words that the user may have meant instead.
 */
export function typeNamed(
  types: readonly Stored<DelegatedType>[],
  word: string,
  otherNames: readonly string[] = [],
): Stored<DelegatedType> {
  const wanted = word.toLowerCase();
  const [type, other] = types.filter(({ spec: { plural, kind, group = "" } }) =>
    [plural, kind.toLowerCase()].some((name) => wanted === name || (group !== "" && wanted === `${name}.${group}`)),
  );
  if (type !== undefined && other === undefined) return type;
  const object = JSON.stringify(word);
  if (type !== undefined) {
    const problem = `is the name of ${type.metadata.name} and of ${other?.metadata.name}`;
    throw new Failure("usage", { object, problem, remedy: `write ${type.metadata.name}` });
  }
  const names = types.map(({ metadata }) => metadata.name).join(", ");
  const own = types.flatMap(({ spec: { plural, kind } }) => [plural, kind.toLowerCase()]);
  const known = `write pod, deployment or another workload, or a delegated type (${names === "" ? "there are none" : names})`;
  const meant = didYouMean(word, [...otherNames, ...own]);
  throw new Failure("usage", {
    object,
    problem: "is nothing that it shows: no DelegatedType names it",
    remedy: meant === undefined ? known : `${meant} Or ${known}`,
  });
}
