import { FORWARDED_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, PodCondition, Stored } from "../../../api/kubernetes.ts";
import { forwardedAnnotations, forwardedLabels } from "../../../pods/delegate.ts";
import type { StatusPatch } from "../../../pods/feedback.ts";
import { type ForwardPatch, fingerprint } from "../../../pods/forward-record.ts";
import { conditionOf } from "../../../pods/phase.ts";
import type { Wanted } from "../../../runtime/repeated-writes.ts";

/** What a write is for. One that comes again for the same, with nothing else between, was undone by somebody. */
export interface Purpose {
  /** What is changed, for people: keys, condition types, fields. */
  readonly parts: readonly string[];
  readonly wanted: Wanted;
}

/** Returns the name under which a write is held that another writer undoes each time. */
export function undone({ wanted }: Purpose): string {
  return `undone ${JSON.stringify(wanted)}`;
}

/** Undefined for what nobody can undo, or what says nothing new but a time. */
export function purposeOf(proxy: Pod, delegate: Stored<Pod>, { subresource, body }: ForwardPatch): Purpose | undefined {
  if (subresource === "status") return gatesPurpose(proxy, delegate, body.status);
  if (subresource !== undefined) return undefined;
  const { labels = {}, annotations = {} } = body.metadata;
  const record = annotations[FORWARDED_ANNOTATION];
  const keys = [...Object.keys(labels), ...Object.keys(annotations)].filter((key) => key !== FORWARDED_ANNOTATION);
  const fields = Object.keys(body.spec ?? {});
  const isRecorded = delegate.metadata.annotations?.[FORWARDED_ANNOTATION] !== undefined;
  // That both sides agree on a gate is put on record as often as it changes.
  if (keys.length === 0 && fields.length === 0 && isRecorded) return undefined;
  return {
    parts: [...keys, ...fields, ...(isRecorded ? [] : [FORWARDED_ANNOTATION])],
    wanted: { pod: fingerprint([forwardedLabels(proxy), forwardedAnnotations(proxy), record]) },
  };
}

function gatesPurpose(proxy: Pod, delegate: Stored<Pod>, status: object = {}): Purpose | undefined {
  const { conditions = [] } = status as { readonly conditions?: readonly Pick<PodCondition, "type">[] };
  const parts = conditions
    .map(({ type }) => type)
    .filter((type) => saidBy(conditionOf(proxy, type)) !== saidBy(conditionOf(delegate, type)));
  if (parts.length === 0) return undefined;
  const said = parts.map((type) => [`gate ${type}`, fingerprint(saidBy(conditionOf(proxy, type)))]);
  return { parts, wanted: Object.fromEntries(said) };
}

/** Whoever says it again says it with another time. */
function saidBy(condition: PodCondition | undefined): string {
  const { status, reason, message } = condition ?? {};
  return JSON.stringify([status, reason, message]);
}

/** The purpose of a write of a proxy's status. */
export function statusPurpose({ status }: StatusPatch): Purpose {
  const { conditions = [], ...fields } = status as { readonly conditions?: readonly Pick<PodCondition, "type">[] };
  const wanted = [
    ...Object.entries(fields).map(([field, value]) => [`field ${field}`, fingerprint(value)]),
    ...conditions.map((condition) => [`condition ${condition.type}`, fingerprint(condition)]),
  ];
  const parts = [...Object.keys(fields), ...conditions.map(({ type }) => type)];
  return { parts, wanted: Object.fromEntries(wanted) };
}
