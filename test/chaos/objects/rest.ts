import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { isJsonObject, jsonEqual } from "../../../src/api/json.ts";
import {
  CLUSTER_ANNOTATION,
  CLUSTER_SELECTOR_ANNOTATION,
  CLUSTERS_ANNOTATION,
  HOST_LABEL,
  OVERRIDES_ANNOTATION,
  PREFERENCES_ANNOTATION,
  WHOLE_FINALIZER,
  WHOLE_KEY,
} from "../../../src/api/keys.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import { clusters } from "../../../src/api/resources.ts";
import { membersOfObject } from "../../../src/copies/object-members.ts";
import { isAdopted } from "../../../src/copies/objects.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import type { Scene } from "../scene.ts";
import { FOREIGN_NAME } from "../workloads.ts";
import { fieldsOf, KINDS, type Kind, keepsTaken, OPEN_LABEL, TAKEN } from "./kinds.ts";
import { mayBeContested } from "./ledger.ts";

const MEMBERS = ["west", "east"] as const;
type MemberName = (typeof MEMBERS)[number];

/** The objects of one kind in all clusters. */
interface Everywhere {
  readonly kind: Kind;
  readonly wanted: readonly Stored<AnyObject>[];
  readonly held: Readonly<Record<MemberName, readonly Stored<AnyObject>[]>>;
  /** Members whose Cluster has the label that objects select. */
  readonly open: readonly MemberName[];
}

/** Returns the remaining problems of whole objects. `left`: a member left and joined again. */
export async function restlessObjects(scene: Scene, left: boolean): Promise<string[]> {
  const { clients, namespace } = scene;
  const joined = await clients.host.list(clusters, {});
  const open = MEMBERS.filter((member) =>
    joined.items.some(({ metadata }) => metadata.name === member && metadata.labels?.[OPEN_LABEL] === "true"),
  );
  const kinds = await Promise.all(
    scene.kinds.map(async (kind) => {
      const [wanted, west, east] = await Promise.all(
        (["host", ...MEMBERS] as const).map((cluster) => clients[cluster].list(KINDS[kind], { namespace })),
      );
      const held = { west: west?.items ?? [], east: east?.items ?? [] };
      return problemsOf(scene, { kind, wanted: wanted?.items ?? [], held, open }, left);
    }),
  );
  return kinds.flat();
}

function problemsOf(scene: Scene, everywhere: Everywhere, left: boolean): string[] {
  const { kind, wanted, held } = everywhere;
  const whole = wanted.filter(({ metadata }) => metadata.labels?.[WHOLE_KEY] !== undefined);
  const uids = new Set(whole.map(({ metadata }) => metadata.uid));
  const isCopy = ({ metadata }: Stored<AnyObject>): boolean =>
    metadata.labels?.[HOST_LABEL] !== undefined && metadata.labels[WHOLE_KEY] !== undefined;
  return [
    ...MEMBERS.flatMap((member) =>
      held[member]
        .filter((object) => isCopy(object) && !uids.has(ownerOf(object)?.uid ?? ""))
        .map(({ metadata }) => `${kind} ${metadata.name}: its copy was left behind in ${member}`),
    ),
    ...wanted
      .filter(({ metadata }) => !uids.has(metadata.uid) && metadata.finalizers?.includes(WHOLE_FINALIZER))
      .map(({ metadata }) => `${kind} ${metadata.name}: was taken back, and has the finalizer`),
    ...whole
      .filter(({ metadata }) => metadata.name !== FOREIGN_NAME)
      .flatMap((object) => objectProblems(scene, everywhere, object))
      .map((problem) => `${kind} ${problem}`),
    ...scene.ledger.pruned
      .filter((pruned) => pruned.kind === kind)
      .map(({ member, name }) => `${kind} ${name}: its copy in ${member} carried the marks of a delivery tool`),
    ...(left ? [] : keptProblems(scene, everywhere)),
  ];
}

/** Members keep adopted objects, and copies whose author asked for it. */
function keptProblems({ ledger }: Scene, { kind, held }: Everywhere): string[] {
  return ledger.kept
    .filter((one) => one.kind === kind && !ledger.emptied.has(`${one.member}/${kind}`))
    .filter(({ member, name }) => held[member].every(({ metadata }) => metadata.name !== name))
    .map(({ member, name }) => `${kind} ${name}: ${member} was to keep it`);
}

function objectProblems(scene: Scene, { kind, held, open }: Everywhere, object: Stored<AnyObject>): string[] {
  const { name, uid, labels = {}, deletionTimestamp } = object.metadata;
  if (deletionTimestamp !== undefined) return [`${name}: is still being deleted`];
  if (labels[WHOLE_KEY] !== "true") return [`${name}: is still being taken back`];
  // A copy without the label is for pods alone.
  const copyIn = (member: MemberName): Stored<AnyObject> | undefined =>
    held[member].find(
      (copy) =>
        copy.metadata.name === name && ownerOf(copy)?.uid === uid && copy.metadata.labels?.[WHOLE_KEY] !== undefined,
    );
  // An object of the member's own, such as a copy that it keeps of an earlier object, has the place.
  const isRefusedIn = (member: MemberName): boolean =>
    held[member].some(({ metadata }) => metadata.name === name && metadata.labels?.[HOST_LABEL] === undefined);
  const records = membersOfObject(object) ?? [];
  const problems: string[] = [];
  const copies: { readonly member: MemberName; readonly copy: Stored<AnyObject> }[] = [];
  const members = membersFor(kind, object, open);
  const hasMember = object.metadata.annotations?.[CLUSTER_ANNOTATION] !== undefined;
  if (kind === "Engine" && !hasMember && admitting(object, open).length > 0)
    problems.push(`${name}: no member is recorded`);
  for (const member of MEMBERS) {
    const copy = copyIn(member);
    const record = records.find((one) => one.member === member);
    if (!members.includes(member)) {
      if (copy !== undefined && !isDivided(object))
        problems.push(`${name}: ${member} has a copy, and is not to have it`);
      if (copy === undefined && record !== undefined)
        problems.push(`${name}: ${member} is on record as ${record.state}`);
      if (copy === undefined || !isDivided(object)) continue;
    }
    if (copy === undefined) {
      if (isRefusedIn(member)) {
        if (record?.state !== "Refused")
          problems.push(`${name}: ${member} refuses it, and is on record as ${record?.state}`);
      } else if (!isDivided(object)) problems.push(`${name}: ${member} has no copy`);
      continue;
    }
    copies.push({ member, copy });
    problems.push(...contentProblems(scene, { kind, member, object, copy }));
    const isContested = record?.state === "Contested" && mayBeContested(scene.ledger, { member, kind, name });
    if (record?.state !== "InStep" && !isContested)
      problems.push(`${name}: ${member} is on record as ${record?.state}`);
    if (record?.generation !== object.metadata.generation) {
      problems.push(`${name}: generation ${object.metadata.generation}, of ${member} on record ${record?.generation}`);
    }
  }
  if (isDivided(object)) {
    const parts = copies.map(({ copy }) => Number(fieldsOf(kind, copy).parts));
    const sum = parts.reduce((total, one) => total + one, 0);
    const { parts: all } = fieldsOf(kind, object);
    if (sum !== all || parts.includes(0)) problems.push(`${name}: ${all} parts are divided as ${parts.join(" and ")}`);
  }
  // A member that refuses the object observes nothing.
  return [...problems, ...(members.some(isRefusedIn) ? [] : statusProblems(object, copies))];
}

function isDivided({ metadata }: Stored<AnyObject>): boolean {
  return metadata.annotations?.[PREFERENCES_ANNOTATION] !== undefined;
}

/** Returns the members that are to have the object, which of a divided one some may lack. */
function membersFor(kind: Kind, object: Stored<AnyObject>, open: readonly MemberName[]): readonly MemberName[] {
  if (kind !== "Engine") return admitting(object, open);
  return MEMBERS.filter((member) => object.metadata.annotations?.[CLUSTER_ANNOTATION] === member);
}

/** Returns the members that the author's annotations admit. */
function admitting({ metadata: { annotations = {} } }: Stored<AnyObject>, open: readonly MemberName[]) {
  const named = annotations[CLUSTERS_ANNOTATION]?.split(",");
  if (named !== undefined) return MEMBERS.filter((member) => named.includes(member));
  return annotations[CLUSTER_SELECTOR_ANNOTATION] === undefined ? MEMBERS : open;
}

interface Compared {
  readonly kind: Kind;
  readonly member: MemberName;
  readonly object: Stored<AnyObject>;
  readonly copy: Stored<AnyObject>;
}

function contentProblems({ ledger }: Scene, { kind, member, object, copy }: Compared): string[] {
  const { name, annotations = {} } = object.metadata;
  const isOverridden = member === "west" && annotations[OVERRIDES_ANNOTATION] !== undefined;
  const wanted: Readonly<Record<string, unknown>> = {
    ...fieldsOf(kind, object),
    ...(isOverridden ? { region: "west" } : {}),
    ...(isDivided(object) ? { parts: fieldsOf(kind, copy).parts } : {}),
  };
  const { [TAKEN.field]: taken, ...there } = fieldsOf(kind, copy);
  const { [TAKEN.field]: _, ...here } = wanted;
  const isTaken = keepsTaken(kind) && ledger.taken.some(({ uid }) => uid === copy.metadata.uid);
  // The member's own creator has the field of an adopted object.
  const mayBeTheirs = isAdopted(copy) || mayBeContested(ledger, { member, kind, name });
  const problems: string[] = [];
  if (!jsonEqual(here, there)) problems.push(`${name}: ${JSON.stringify(here)}, in ${member} ${JSON.stringify(there)}`);
  const isRight = taken === TAKEN.theirs ? isTaken || mayBeTheirs : taken === TAKEN.ours && !isTaken;
  if (!isRight) {
    problems.push(`${name}: the field of another manager is ${String(taken)} in ${member}`);
  }
  return problems;
}

/** The host's status tells what the copies' do. */
function statusProblems(
  { metadata: { name, generation }, status }: Stored<AnyObject>,
  copies: readonly { readonly member: MemberName; readonly copy: Stored<AnyObject> }[],
): string[] {
  const there = copies.map(({ copy }) => jsonStatus(copy.status)).filter((one) => one !== undefined);
  if (there.length === 0) return [];
  const here = jsonStatus(status) ?? {};
  const same = (field: string): unknown => {
    const values = new Set(there.map((one) => one[field]));
    return values.size === 1 ? [...values][0] : undefined;
  };
  const ready = there.map((one) => readyOf(one));
  const isReady = ready.includes("False") ? "False" : ready.every((one) => one === "True") ? "True" : "Unknown";
  const wanted = {
    observedGeneration: generation,
    seen: same("seen"),
    phase: same("phase"),
    readyReplicas: there.reduce((sum, one) => sum + Number(one.readyReplicas ?? 0), 0),
    ready: isReady,
  };
  const { observedGeneration, seen, phase, readyReplicas } = here;
  const shown = { observedGeneration, seen, phase, readyReplicas, ready: readyOf(here) };
  return JSON.stringify(wanted) === JSON.stringify(shown)
    ? []
    : [`${name}: its status is ${JSON.stringify(shown)}, and should be ${JSON.stringify(wanted)}`];
}

function jsonStatus(status: unknown): Readonly<Record<string, unknown>> | undefined {
  return isJsonObject(status) && Object.keys(status).length > 0 ? status : undefined;
}

function readyOf({ conditions }: Readonly<Record<string, unknown>>): unknown {
  const all = Array.isArray(conditions) ? conditions.filter(isJsonObject) : [];
  return all.find(({ type }) => type === "Ready")?.status;
}
