import { ADMITTED_BY_ANNOTATIONS, INTERNAL_ANNOTATIONS } from "../api/keys.ts";
import type { Pod, PodSpec } from "../api/kubernetes.ts";
import { forwardedTolerations } from "./failover.ts";

/** Fingerprints of what a delegate has from its proxy's spec, by path, e.g. `image/main`. */
export type Fingerprints = Readonly<Record<string, string>>;

/** What a delegate's annotation `legation.dev/forwarded` says. */
export interface ForwardedRecord {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  /** Types of the gates' conditions that proxy and delegate have agreed on; absent: none. */
  readonly gates?: readonly string[];
  /** Fingerprints of these conditions as both had them last, by type; absent: not known. */
  readonly gatePrints?: Fingerprints;
  /** Types of other conditions that the proxy has from its delegate; absent: an earlier version wrote the record, and copied all of them. */
  readonly conditions?: readonly string[];
  /** Undefined when the record does not say. */
  readonly spec?: Fingerprints;
}

/** The record as the annotation's value. */
export function writeRecord(record: ForwardedRecord): string {
  const { labels, annotations, gates = [], gatePrints = {}, conditions, spec } = record;
  const hasPrints = Object.keys(gatePrints).length > 0;
  return JSON.stringify({
    labels,
    annotations,
    ...(gates.length === 0 ? {} : { gates }),
    ...(hasPrints ? { gatePrints } : {}),
    ...(conditions === undefined ? {} : { conditions }),
    spec,
  });
}

const NOTHING: ForwardedRecord = { labels: [], annotations: [], conditions: [] };

// One decision asks for the same several times, and a member may have made it as long as an object can be.
let latest: { readonly text: string; readonly record: ForwardedRecord } | undefined;

/** The record from the annotation's value; it names nothing when the text is unreadable, so nothing is removed by mistake. */
export function readRecord(text: string | undefined): ForwardedRecord {
  if (text === undefined) return NOTHING;
  if (latest?.text !== text) latest = { text, record: parseRecord(text) };
  return latest.record;
}

function parseRecord(text: string): ForwardedRecord {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return NOTHING;
  }
  if (typeof value !== "object" || value === null) return NOTHING;
  const { labels, annotations, gates, gatePrints, conditions, spec } = value as Record<string, unknown>;
  return {
    labels: strings(labels),
    // Earlier versions forwarded what each cluster's admission writes: the member's stays.
    annotations: strings(annotations).filter(
      (key) => !INTERNAL_ANNOTATIONS.has(key) && !ADMITTED_BY_ANNOTATIONS.has(key),
    ),
    gates: strings(gates),
    ...(conditions === undefined ? {} : { conditions: strings(conditions) }),
    ...(typeof gatePrints === "object" && gatePrints !== null ? { gatePrints: textValues(gatePrints) } : {}),
    ...(typeof spec === "object" && spec !== null ? { spec: textValues(spec) } : {}),
  };
}

/**
 * The parts of a spec that may change while a pod runs, by path. Kubernetes allows no other change: core/v1 validation of
 * pods, pods/resize and pods/ephemeralcontainers.
 */
function changeableParts(pod: Pod): ReadonlyMap<string, unknown> {
  const { spec } = pod;
  const parts = new Map<string, unknown>();
  if (spec === undefined) return parts;
  for (const { name, image, resources } of [...(spec.initContainers ?? []), ...spec.containers]) {
    if (image !== undefined) parts.set(`image/${name}`, image);
    if (resources?.requests !== undefined || resources?.limits !== undefined) parts.set(`resources/${name}`, resources);
  }
  for (const container of spec.ephemeralContainers ?? []) parts.set(`ephemeral/${container.name}`, container);
  if (spec.resources !== undefined) parts.set("resources", spec.resources);
  if (spec.activeDeadlineSeconds !== undefined) parts.set("activeDeadlineSeconds", spec.activeDeadlineSeconds);
  const tolerations = forwardedTolerations(pod);
  if (tolerations.length > 0) parts.set("tolerations", tolerations);
  return parts;
}

// One reconcile asks for them several times, and objects in stores never change.
const known = new WeakMap<PodSpec, Fingerprints>();

/** The fingerprints of all changeable parts of a pod's spec. */
export function fingerprints(pod: Pod): Fingerprints {
  const { spec } = pod;
  if (spec === undefined) return {};
  let prints = known.get(spec);
  if (prints === undefined) {
    prints = Object.fromEntries([...changeableParts(pod)].map(([path, part]) => [path, fingerprint(part)]));
    known.set(spec, prints);
  }
  return prints;
}

/**
 * A short text that differs when the value does (FNV-1a, 32 bits): a record of whole images and resources would be as
 * long as the pod.
 */
export function fingerprint(value: unknown): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(JSON.stringify(value, sortedKeys))) {
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return (hash >>> 0).toString(36);
}

/** A replacer for `JSON.stringify`: another version of an API server may send the same fields in another order. */
function sortedKeys(_key: string, value: unknown): unknown {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  return Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function textValues(value: object): Record<string, string> {
  return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === "string"));
}
