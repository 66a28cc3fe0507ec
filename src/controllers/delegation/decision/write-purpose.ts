import { FORWARDED_ANNOTATION } from "../../../api/keys.ts";
import type { Pod, PodCondition, Stored } from "../../../api/kubernetes.ts";
import { forwardedAnnotations, forwardedLabels } from "../../../pods/delegate.ts";
import type { StatusPatch } from "../../../pods/feedback.ts";
import { fingerprint } from "../../../pods/fingerprints.ts";
import type { ForwardPatch } from "../../../pods/forward-record.ts";
import { conditionOf } from "../../../pods/pod-state.ts";
import { HOLD_MS } from "../../../runtime/held-writes.ts";
import { soonest } from "../../../runtime/requeue.ts";
import type { Wanted } from "../../../runtime/undone-writes.ts";
import { isWriteHeld, type Memory } from "../../../scheduling/memory.ts";

/** The purpose of a write. A write for the same purpose, with no other between, means that another writer undid the first. */
export interface Purpose {
  readonly parts: readonly string[];
  readonly wanted: Wanted;
}

/** Names, among held writes, all writes for a purpose that another writer undoes. */
export function undone({ wanted }: Purpose): string {
  return `undone ${JSON.stringify(wanted)}`;
}

/** Returns the purpose of a forward; undefined where no other writer can undo it, or only a time changes. */
export function purposeOf(proxy: Pod, delegate: Stored<Pod>, { subresource, body }: ForwardPatch): Purpose | undefined {
  if (subresource === "status") return gatesPurpose(proxy, delegate, body.status);
  if (subresource !== undefined) return undefined;
  const { labels = {}, annotations = {} } = body.metadata;
  const record = annotations[FORWARDED_ANNOTATION];
  const keys = [...Object.keys(labels), ...Object.keys(annotations)].filter((key) => key !== FORWARDED_ANNOTATION);
  const fields = Object.keys(body.spec ?? {});
  const isRecorded = delegate.metadata.annotations?.[FORWARDED_ANNOTATION] !== undefined;
  // The record that both sides agree on a gate changes as often as the gate does.
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

/** Leaves out the time, which changes with each repetition. */
function saidBy(condition: PodCondition | undefined): string {
  const { status, reason, message } = condition ?? {};
  return JSON.stringify([status, reason, message]);
}

export function statusPurpose({ status }: StatusPatch): Purpose {
  const { conditions = [], ...fields } = status as { readonly conditions?: readonly Pick<PodCondition, "type">[] };
  const wanted = [
    ...Object.entries(fields).map(([field, value]) => [`field ${field}`, fingerprint(value)]),
    ...conditions.map((condition) => [`condition ${condition.type}`, fingerprint(condition)]),
  ];
  const parts = [...Object.keys(fields), ...conditions.map(({ type }) => type)];
  return { parts, wanted: Object.fromEntries(wanted) };
}

// A write without effect is held by then, and the next decision is another one.
const CHECKED_MS = HOLD_MS + 1000;

/** Reports whether a patch is held: it was refused lately, had no effect, or is undone each time. */
export function isFutile(memory: Memory, patch: object, purpose: Purpose | undefined, now: number): boolean {
  const writes = [JSON.stringify(patch), ...(purpose === undefined ? [] : [undone(purpose)])];
  return writes.some((write) => isWriteHeld(memory, write, now));
}

/** Returns when a held write may be sent again, or when to see whether a write had an effect; epoch ms. */
export function writeAgainAt(
  { held = {} }: Memory,
  actions: readonly { readonly type: string }[],
  now: number,
): number | undefined {
  const times = Object.values(held).flatMap(({ until }) => (until > now ? [until] : []));
  const writes = actions.some(({ type }) => type === "status" || type === "forward");
  return soonest(...times, writes ? now + CHECKED_MS : undefined);
}
