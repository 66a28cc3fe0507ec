import type { AnyObject, DelegatedType } from "../api/delegated-type.ts";
import type { Pod } from "../api/kubernetes.ts";
import { resourceOfType } from "../api/resources.ts";
import type { Resource } from "../kube/resources.ts";
import { type Dependency, dependenciesBy, type FindDependencies } from "../pods/dependencies.ts";
import type { GroupName } from "./groups.ts";

/** A type whose objects go where the pods are that name them. */
export interface FollowedObjects {
  /** Name of the DelegatedType. */
  readonly type: string;
  readonly resource: Resource<AnyObject>;
  /** Returns the objects that a pod names. */
  readonly of: FindDependencies;
  /** Returns the pods that share an object with this one, if objects of the type confine them to one member. */
  readonly groupOf: (pod: Pod) => GroupName | undefined;
}

/** Compiles the rule of a type. Undefined for one whose objects go to members by themselves. */
export function followedObjects({
  metadata: { name: type = "" },
  spec,
}: Pick<DelegatedType, "metadata" | "spec">): FollowedObjects | undefined {
  if (spec.follows === undefined) return undefined;
  const { names, optional, confines = false } = spec.follows;
  const of = dependenciesBy(
    names.map((rule) => [spec.kind, optional === true ? { ...rule, optional } : rule] as const),
    { missing: (_, { name }) => ({ reason: "NotPlaced", message: `${type} "${name}" not found` }) },
  );
  const groupOf = (pod: Pod): GroupName | undefined => {
    const [object] = confines ? of(pod) : [];
    if (object === undefined) return undefined;
    const { kind, namespace, name } = object;
    return { id: `${namespace}/${type}/${name}`, text: `the pods of ${kind} ${name}`, isGang: true };
  };
  return { type, resource: resourceOfType({ spec }), of, groupOf };
}

/** Returns the objects that a pod names by the rules of these types. Their kind is the type's name: several types may have one kind. */
export function followedBy(pod: Pod, types: readonly FollowedObjects[]): readonly Dependency[] {
  return types.flatMap(({ type, of }) => of(pod).map((object) => ({ ...object, kind: type })));
}
