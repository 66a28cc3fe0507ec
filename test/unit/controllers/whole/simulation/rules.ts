import type { AnyObject } from "../../../../../src/api/delegated-type.ts";
import { jsonEqual } from "../../../../../src/api/json.ts";
import { CLUSTER_ANNOTATION, HOST_LABEL, WHOLE_FINALIZER, WHOLE_KEY } from "../../../../../src/api/keys.ts";
import type { Stored } from "../../../../../src/api/kubernetes.ts";
import { membersOfObject } from "../../../../../src/copies/object-members.ts";
import { ownerOf } from "../../../../../src/pods/delegate.ts";
import type { SimulatedCluster } from "./cluster.ts";
import { fieldsOf, PLURALS, versionOf } from "./objects.ts";

export const MEMBERS = ["west", "east"] as const;
export type MemberName = (typeof MEMBERS)[number];

/** An object of a member's own, and its version when it was made. */
export interface Foreign {
  readonly plural: string;
  readonly member: MemberName;
  readonly version: string;
}

/** The clusters at rest, and what the rules depend on. */
export interface AtRest {
  readonly host: SimulatedCluster;
  readonly members: Readonly<Record<MemberName, SimulatedCluster>>;
  /** Members whose Cluster has the label that objects select. */
  readonly open: readonly MemberName[];
  readonly foreign: readonly Foreign[];
  /** Copies whose color another manager of the member set, of a type that reports drift. */
  readonly taken: ReadonlySet<string>;
}

/** Returns what is not as it has to be once nothing happens any more. */
export function problemsAtRest(scene: AtRest): string[] {
  const { host, members, foreign } = scene;
  return [
    ...foreign
      .filter(
        ({ plural, member, version }) => members[member].find(plural, "foreign")?.metadata.resourceVersion !== version,
      )
      .map(({ plural, member }) => `${member}: the foreign one of ${plural} was changed`),
    ...PLURALS.flatMap((plural) => leftBehind(scene, plural)),
    ...PLURALS.flatMap((plural) =>
      host.all(plural).flatMap((object) => {
        return objectProblems(scene, plural, object).map((problem) => `${plural}/${object.metadata.name} ${problem}`);
      }),
    ),
  ];
}

function leftBehind({ host, members }: AtRest, plural: string): string[] {
  const wanted = host.all(plural).filter(({ metadata }) => metadata.labels?.[WHOLE_KEY] === "true");
  const uids = new Set(wanted.map(({ metadata }) => metadata.uid));
  const isLeft = (copy: Stored<AnyObject>): boolean => {
    const { labels = {} } = copy.metadata;
    const isForPods = labels[WHOLE_KEY] === undefined && plural === "configmaps";
    const owner = ownerOf(copy)?.uid;
    return owner !== undefined && labels[HOST_LABEL] !== undefined && !isForPods && !uids.has(owner);
  };
  return MEMBERS.flatMap((member) =>
    members[member]
      .all(plural)
      .filter(isLeft)
      .map(({ metadata }) => `${member}: ${plural}/${metadata.name} was left behind`),
  );
}

function objectProblems(scene: AtRest, plural: string, object: Stored<AnyObject>): string[] {
  const { name, labels = {}, annotations = {}, finalizers = [], deletionTimestamp } = object.metadata;
  if (deletionTimestamp !== undefined) return ["is still being deleted"];
  if (annotations[WHOLE_KEY] !== undefined) return name === "foreign" ? [] : givenProblems(scene, plural, object);
  const hasMarks = finalizers.includes(WHOLE_FINALIZER) || labels[WHOLE_KEY] !== undefined;
  return hasMarks ? ["was taken back, and has marks"] : [];
}

function givenProblems(scene: AtRest, plural: string, object: Stored<AnyObject>): string[] {
  const { name, uid, annotations = {}, generation } = object.metadata;
  const problems: string[] = [];
  const admitting = membersFor(scene, object);
  const recorded = annotations[CLUSTER_ANNOTATION];
  if (plural === "engines" && recorded === undefined && admitting.length > 0) problems.push("has no member");
  const places = plural === "engines" ? MEMBERS.filter((one) => recorded === one) : admitting;
  const records = membersOfObject(object) ?? [];
  const statuses: unknown[] = [];
  for (const member of MEMBERS) {
    const found = scene.members[member].find(plural, name);
    const marks = found?.metadata.labels ?? {};
    const isCopy = found !== undefined && ownerOf(found)?.uid === uid && WHOLE_KEY in marks && HOST_LABEL in marks;
    const record = records.find((one) => one.member === member);
    if (!places.includes(member)) {
      if (isCopy) problems.push(`is in ${member}, and not to be there`);
      if (record !== undefined) problems.push(`is on record as ${record.state} in ${member}`);
    } else if (found !== undefined && marks[HOST_LABEL] === undefined) {
      if (record?.state !== "Refused") problems.push(`is refused by ${member}, and on record as ${record?.state}`);
    } else if (!isCopy) problems.push(`is not in ${member}`);
    else {
      const [here, there] = [fieldsOf(object), fieldsOf(found)];
      if (scene.taken.has(found.metadata.uid)) Object.assign(here, { color: "blue" });
      if (!jsonEqual(here, there)) {
        problems.push(`is ${JSON.stringify(there)} in ${member}, not ${JSON.stringify(here)}`);
      }
      if (record?.state !== "InStep" || record.generation !== generation) {
        problems.push(`is on record as ${JSON.stringify(record)}`);
      }
      statuses.push(found.status);
    }
  }
  // A member that refuses the object observes nothing.
  if (plural === "configmaps" || statuses.length < places.length || places.length === 0) return problems;
  const ready = plural === "widgets" ? places.length : 1;
  const wanted = { observedGeneration: generation, seen: versionOf(object), ready };
  if (jsonEqual(object.status, wanted)) return problems;
  return [...problems, `has the status ${JSON.stringify(object.status)}, not ${JSON.stringify(wanted)}`];
}

function membersFor({ open }: AtRest, { metadata: { annotations = {} } }: Stored<AnyObject>): readonly MemberName[] {
  const { "legation.dev/clusters": named, "legation.dev/cluster-selector": selector } = annotations;
  if (named !== undefined) return MEMBERS.filter((member) => named === member);
  return selector === undefined ? MEMBERS : open;
}
