import { defined } from "../api/defined.ts";
import type { AnyObject, DelegatedType } from "../api/delegated-type.ts";
import { isJsonObject, pathOfPointer, valueAt, withoutKeys } from "../api/json.ts";
import { QUEUED_OBJECT_LABEL } from "../api/keys.ts";
import type { KubeObject, ObjectMeta, Pod, Stored } from "../api/kubernetes.ts";
import { KUEUE_PREFIX, QUEUE_NAME_LABEL } from "../api/kueue.ts";
import { podSpec } from "../pods/spec-shape.ts";
import { type MemberLabels, specInMember } from "../pods/virtual-node-terms.ts";
import { changedAt, partsAt } from "./field-paths.ts";
import type { TypeExpressions } from "./type-expressions.ts";

type QueuedType = Pick<DelegatedType, "spec">;
/** Objects of one type that a queue holds back. */
export interface QueuedObjects {
  readonly type: QueuedType;
  readonly expressions: Pick<TypeExpressions, "hasBegun" | "podCounts">;
  readonly objects: readonly Stored<AnyObject>[];
}

type Maps = Pick<ObjectMeta, "labels" | "annotations">;

export function isOfQueue({ metadata }: KubeObject): boolean {
  return metadata?.labels?.[QUEUE_NAME_LABEL] !== undefined;
}

/** Reports whether the object's queue keeps it from running. */
export function isHeldBack(object: AnyObject, { spec: { queue } }: QueuedType): boolean {
  return queue !== undefined && valueAt(object, pathOfPointer(queue.suspend)) === true;
}

/** Reports whether Kueue has still to admit the object: the flavors that it gives say which members may have it. */
export function isQueuedObject(object: AnyObject, type: QueuedType): boolean {
  return isOfQueue(object) && isHeldBack(object, type);
}

/** Returns why the member cannot run the pods of an object that a queue admitted: their flavors select others. */
export function flavorExcludes(object: AnyObject, type: QueuedType, member: MemberLabels): string | undefined {
  if (!isOfQueue(object)) return undefined;
  for (const pointer of type.spec.queue?.templates ?? []) {
    for (const template of partsAt(object, pointer)) {
      const { refusal } = specInMember(member, { containers: [], nodeSelector: selectorOf(template) });
      if (refusal !== undefined) return refusal;
    }
  }
  return undefined;
}

export function podsOfTemplates(object: AnyObject, type: QueuedType): readonly Pod[] {
  const templates = type.spec.queue?.templates.flatMap((pointer) => partsAt(object, pointer)) ?? [];
  return templates.map((template) => {
    if (!isJsonObject(template)) return {};
    const spec = podSpec.safeParse(template.spec).data;
    return { metadata: { labels: stringsAt(template, ["metadata", "labels"]) }, ...defined({ spec }) };
  });
}

/**
 * Returns an object of a queue as the member runs it: without Kueue's keys, and without node labels that no node there has. The
 * label of its pods says whose they are.
 */
export function outsideQueue(object: Stored<AnyObject>, type: QueuedType, member: MemberLabels): Stored<AnyObject> {
  const { queue } = type.spec;
  if (queue === undefined || !isOfQueue(object)) return object;
  let changed = object;
  for (const pointer of queue.templates)
    changed = changedAt(changed, pointer, (part) => templateIn(part, object, member));
  return { ...changed, metadata: { ...object.metadata, ...withoutKueue(object.metadata) } };
}

function templateIn(template: unknown, { metadata: { uid } }: Stored<AnyObject>, member: MemberLabels): unknown {
  if (!isJsonObject(template)) return template;
  const { metadata, spec } = template;
  const { nodeSelector: _, ...fields } = isJsonObject(spec) ? spec : {};
  const there = specInMember(member, { containers: [], nodeSelector: selectorOf(template) }).spec;
  const own = isJsonObject(metadata) ? { ...metadata, ...withoutKueue(mapsOf(metadata)) } : {};
  return {
    ...template,
    metadata: { ...own, labels: { ...own.labels, [QUEUED_OBJECT_LABEL]: uid } },
    spec: { ...fields, ...(there.nodeSelector === undefined ? {} : { nodeSelector: there.nodeSelector }) },
  };
}

/** Returns labels and annotations without Kueue's: a Kueue of the member would queue the object again. */
export function withoutKueue({ labels, annotations }: Maps = {}): Maps {
  const isKueues = (key: string): boolean => key.startsWith(KUEUE_PREFIX);
  return {
    ...(labels === undefined ? {} : { labels: withoutKeys(labels, isKueues) }),
    ...(annotations === undefined ? {} : { annotations: withoutKeys(annotations, isKueues) }),
  };
}

function selectorOf(template: unknown): Record<string, string> {
  return stringsAt(template, ["spec", "nodeSelector"]);
}

function mapsOf(metadata: Readonly<Record<string, unknown>>): Maps {
  const only = (key: string): object => (isJsonObject(metadata[key]) ? { [key]: stringsAt(metadata, [key]) } : {});
  return { ...only("labels"), ...only("annotations") };
}

function stringsAt(object: unknown, path: readonly string[]): Record<string, string> {
  const map = valueAt(object, path);
  const entries = Object.entries(isJsonObject(map) ? map : {});
  return Object.fromEntries(entries.flatMap(([key, value]) => (typeof value === "string" ? [[key, value]] : [])));
}
