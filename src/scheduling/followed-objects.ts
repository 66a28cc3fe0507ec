import type { AnyObject, DelegatedType } from "../api/delegated-type.ts";
import { PROXY_LABEL, RESTRICTED_ANNOTATION } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import { resourceOfType } from "../api/resources.ts";
import { type Dependency, dependenciesBy, type FindDependencies } from "../copies/named-by-pods.ts";
import type { Resource } from "../kube/resources.ts";
import { isRecorded } from "../pods/restricted-objects.ts";
import type { GroupName } from "./groups.ts";

/** A type whose objects go where the pods are that name them. */
export interface FollowedObjects {
  /** Name of the DelegatedType. */
  readonly type: string;
  readonly resource: Resource<AnyObject>;
  /** Returns the objects that a pod names. */
  readonly of: FindDependencies;
  /** Returns those that members may get for the pod: of a restricted type what its author was asked the verb for. */
  readonly givenFor: FindDependencies;
  /** Says why members get none of an object that the pod names. Undefined if they may get all. */
  readonly withheld: (pod: Pod) => string | undefined;
  /** Returns the pods that share an object with this one, if objects of the type confine them to one member. */
  readonly groupOf: (pod: Pod) => GroupName | undefined;
}

/** Compiles the rule of a type. Undefined for one whose objects go to members by themselves. */
export function followedObjects({
  metadata: { name: type = "" },
  spec,
}: Pick<DelegatedType, "metadata" | "spec">): FollowedObjects | undefined {
  if (spec.follows === undefined) return undefined;
  const { names, optional, confines = false, restricted = false } = spec.follows;
  const of = dependenciesBy(
    names.map((rule) => [spec.kind, optional === true ? { ...rule, optional } : rule] as const),
    { missing: (_, { name }) => ({ reason: "NotPlaced", message: `${type} "${name}" not found` }) },
  );
  // A delegate has no record: what it has in its member was given for its proxy.
  const isWithheld = ({ metadata: { labels = {}, annotations = {} } = {} }: Pod, name: string): boolean =>
    restricted &&
    labels[PROXY_LABEL] !== undefined &&
    !isRecorded(annotations[RESTRICTED_ANNOTATION] ?? "", type, name);
  const givenFor: FindDependencies = restricted ? (pod) => of(pod).filter(({ name }) => !isWithheld(pod, name)) : of;
  const groupOf = (pod: Pod): GroupName | undefined => {
    const [object] = confines ? givenFor(pod) : [];
    if (object === undefined) return undefined;
    const { kind, namespace, name } = object;
    return { id: `${namespace}/${type}/${name}`, text: `the pods of ${kind} ${name}`, isGang: true };
  };
  const withheld = (pod: Pod): string | undefined => {
    const object = of(pod).find(({ name }) => isWithheld(pod, name));
    return (
      object &&
      `${object.kind} ${JSON.stringify(object.name)} needs the verb delegate on ${type}, for which the pod's author was not ` +
        `asked, as annotation ${RESTRICTED_ANNOTATION} does not name it; create the pod anew`
    );
  };
  return { type, resource: resourceOfType({ spec }), of, givenFor, withheld, groupOf };
}

/** Returns the objects that a pod names by the rules of these types. Their kind is the type's name: several types may have one kind. */
export function followedBy(pod: Pod, types: readonly FollowedObjects[]): readonly Dependency[] {
  return types.flatMap(({ type, of }) => of(pod).map((object) => ({ ...object, kind: type })));
}
