import { sortedKeys } from "../api/json.ts";
import { ADMITTED_BY_ANNOTATIONS, INTERNAL_ANNOTATIONS } from "../api/keys.ts";
import type { Pod, PodSpec } from "../api/kubernetes.ts";
import { forwardedTolerations } from "./failover.ts";

/** A strategic merge patch with the uid as a precondition. */
export interface ForwardPatch {
  readonly subresource?: "resize" | "ephemeralcontainers" | "status";
  readonly body: {
    readonly metadata: {
      readonly uid: string;
      readonly labels?: Readonly<Record<string, string | null>>;
      readonly annotations?: Readonly<Record<string, string | null>>;
    };
    readonly spec?: object;
    readonly status?: object;
  };
  /** Replacements if the member refuses the patch as a whole, so that one refused part does not block the others. */
  readonly apart?: readonly ForwardPatch[];
}

/** Fingerprints of the proxy's spec, by path, e.g. `image/main`. */
export type Fingerprints = Readonly<Record<string, string>>;

/** The content of a delegate's annotation `legation.dev/forwarded`. */
export interface ForwardedRecord {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
  readonly gates?: readonly string[];
  /** Fingerprints of these conditions as both sides last had them. */
  readonly gatePrints?: Fingerprints;
  /** Undefined in records of 0.1, which copied all conditions. */
  readonly conditions?: readonly string[];
  readonly spec?: Fingerprints;
}

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

// A decision reads the same record several times, and it may be large.
let latest: { readonly text: string; readonly record: ForwardedRecord } | undefined;

/** Parses the annotation's value. Unreadable text yields an empty record, so nothing is removed by mistake. */
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
    // 0.1 recorded annotations of admission plugins; the member's own stay.
    annotations: strings(annotations).filter(
      (key) => !INTERNAL_ANNOTATIONS.has(key) && !ADMITTED_BY_ANNOTATIONS.has(key),
    ),
    gates: strings(gates),
    ...(conditions === undefined ? {} : { conditions: strings(conditions) }),
    ...(typeof gatePrints === "object" && gatePrints !== null ? { gatePrints: textValues(gatePrints) } : {}),
    ...(typeof spec === "object" && spec !== null ? { spec: textValues(spec) } : {}),
  };
}

/** Core/v1 validation of pods, pods/resize and pods/ephemeralcontainers. */
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

// Objects in stores never change, and one reconcile asks several times.
const known = new WeakMap<PodSpec, Fingerprints>();

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

/** Hashes by 32-bit FNV-1a: whole values would be as long as the pod. */
export function fingerprint(value: unknown): string {
  let hash = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(JSON.stringify(value, sortedKeys))) {
    hash = Math.imul(hash ^ byte, 0x01000193);
  }
  return (hash >>> 0).toString(36);
}

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function textValues(value: object): Record<string, string> {
  return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === "string"));
}
