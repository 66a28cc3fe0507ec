import type { AnyObject, DelegatedType } from "../../api/delegated-type.ts";
import type { KubeObject, Stored } from "../../api/kubernetes.ts";
import { delegatedTypes, resourceOfType } from "../../api/resources.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { kindName, type Resource } from "../../kube/resources.ts";
import type { WholeType } from "../../whole/type.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { Discovery } from "./discovery.ts";
import { Failure } from "./failure.ts";
import { listServed, readable } from "./reading.ts";
import { didYouMean } from "./suggestion.ts";

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

/** Finds the type that a user names, by what the API server serves where DelegatedTypes may not be listed. */
export async function findTypeNamed(
  host: ClusterClient,
  word: string,
  signal: AbortSignal,
  otherNames: readonly string[] = [],
): Promise<NamedType> {
  const builtIn = onlyNamed(WHOLE_TYPES, word, ({ resource }) => resource);
  if (builtIn !== undefined) return { resource: withoutShape(builtIn.resource), type: undefined, builtIn };
  const types = await readable(listDelegatedTypes(host, signal));
  if (types !== undefined) {
    const type = typeNamed(types, word, otherNames);
    return { resource: resourceOfType(type), type, builtIn };
  }
  const { types: served } = await new Discovery(host, signal).all();
  const resources = served.map(({ resource }) => resource);
  const resource = onlyNamed(resources, word, (each) => each);
  if (resource === undefined) {
    const known = [...otherNames, ...resources.map(({ kind }) => kind.toLowerCase())];
    throw unknownType(word, "the API server serves no such type", didYouMean(word, known));
  }
  return { resource: withoutShape(resource), type: undefined, builtIn };
}

/** Returns the resource with objects of any fields. */
export function withoutShape({ group, version, plural, kind, namespaced }: Resource<KubeObject>): Resource<AnyObject> {
  return { group, version, plural, kind, namespaced };
}

type TypeNames = Pick<DelegatedType["spec"], "plural" | "kind" | "group">;

/** Returns the type that a word names: by its plural or kind, also with a dot and the group. Throws `Failure` for several. */
function onlyNamed<T>(types: readonly T[], word: string, namesOf: (type: T) => TypeNames): T | undefined {
  const wanted = word.toLowerCase();
  const isNamed = ({ plural, kind, group = "" }: TypeNames): boolean =>
    [plural, kind.toLowerCase()].some((name) => wanted === name || (group !== "" && wanted === `${name}.${group}`));
  const [found, other] = types.filter((type) => isNamed(namesOf(type)));
  if (found === undefined || other === undefined) return found;
  const [name, otherName] = [found, other].map((type) => kindName({ group: "", ...namesOf(type) }));
  const problem = `is the name of ${name} and of ${otherName}`;
  throw new Failure("usage", { object: JSON.stringify(word), problem, remedy: `write ${name}` });
}

function unknownType(word: string, why: string, remedy: string | undefined): Failure {
  return new Failure("usage", { object: JSON.stringify(word), problem: `is nothing that it shows: ${why}`, remedy });
}

/** Returns the type that a user names as for kubectl. `otherNames`: words that the user may have meant. Throws `Failure`. */
export function typeNamed(
  types: readonly Stored<DelegatedType>[],
  word: string,
  otherNames: readonly string[] = [],
): Stored<DelegatedType> {
  const type = onlyNamed(types, word, ({ spec }) => spec);
  if (type !== undefined) return type;
  const names = types.map(({ metadata }) => metadata.name).join(", ");
  const own = types.flatMap(({ spec: { plural, kind } }) => [plural, kind.toLowerCase()]);
  const known = `write pod, deployment or another workload, or a delegated type (${names === "" ? "there are none" : names})`;
  const meant = didYouMean(word, [...otherNames, ...own]);
  throw unknownType(word, "no DelegatedType names it", meant === undefined ? known : `${meant} Or ${known}`);
}
