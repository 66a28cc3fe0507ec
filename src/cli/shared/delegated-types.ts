import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { delegatedTypes, resourceOfType } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { kindName, type Resource } from "../../kube/resources.ts";
import type { WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { readServed, type ServedType } from "./discovery.ts";
import { Failure } from "./failure.ts";
import { listServed, readable } from "./reading.ts";
import { didYouMean } from "./suggestion.ts";
import { namesOfTypes, typesNamed } from "./type-names.ts";

/** Lists DelegatedTypes, which an installation of an earlier version lacks. */
export async function listDelegatedTypes(
  host: ClusterClient,
  signal: AbortSignal,
): Promise<readonly Stored<DelegatedType>[]> {
  return (await listServed(host, delegatedTypes, signal)) ?? [];
}

export interface NamedType {
  readonly resource: Resource<AnyObject>;
  /** Undefined for a built-in type, and where the account may not list DelegatedTypes. */
  readonly type: Stored<DelegatedType> | undefined;
  readonly builtIn: WholeType | undefined;
}

/** Finds the type that a user names as for kubectl, among those that members may have. Rejects with `Failure`. */
export async function findTypeNamed(
  host: ClusterClient,
  word: string,
  signal: AbortSignal,
  otherNames: readonly string[] = [],
): Promise<NamedType> {
  const [{ types: served }, types] = await Promise.all([
    readServed(host, { signal }),
    readable(listDelegatedTypes(host, signal)),
  ]);
  const ofMembers = ({ resource }: Pick<ServedType, "resource">): Omit<NamedType, "resource"> => ({
    type: types?.find(({ metadata }) => metadata.name === kindName(resource)),
    builtIn: WHOLE_TYPES.find((each) => kindName(each.resource) === kindName(resource)),
  });
  const known = served.filter((each) => {
    const { type, builtIn } = ofMembers(each);
    return types === undefined || type !== undefined || builtIn !== undefined;
  });
  const [found, ...others] = typesNamed(known, word);
  if (found === undefined || others.length > 0) throw unknownType(word, [...otherNames, ...namesOfTypes(known)], types);
  const { type, builtIn } = ofMembers(found);
  const resource = type === undefined ? withoutShape(builtIn?.resource ?? found.resource) : resourceOfType(type);
  return { resource, type, builtIn };
}

function unknownType(
  word: string,
  known: readonly string[],
  types: readonly Stored<DelegatedType>[] | undefined,
): Failure {
  const names = types?.map(({ metadata }) => metadata.name).join(", ");
  const problem = names === undefined ? "the API server serves no such type" : "no DelegatedType names it";
  const instead = `write pod, deployment or another workload, or a delegated type (${names || "there are none"})`;
  const meant = didYouMean(word, known);
  const remedy = names === undefined ? meant : meant === undefined ? instead : `${meant} Or ${instead}`;
  return new Failure("usage", {
    object: JSON.stringify(word),
    problem: `is nothing that it shows: ${problem}`,
    remedy,
  });
}

/** Returns the resource with objects of any fields. */
export function withoutShape({ group, version, plural, kind, namespaced }: Resource<KubeObject>): Resource<AnyObject> {
  return { group, version, plural, kind, namespaced };
}
