import { isJsonObject, jsonOrNothing } from "../api/json.ts";
import { ADMITTED_BY_ANNOTATIONS, FORWARDED_ANNOTATION, INTERNAL_ANNOTATIONS } from "../api/keys.ts";
import type { Pod } from "../api/kubernetes.ts";
import { compacted, expanded, type ForwardedRecord, type KeysOfMaps, keysPrint } from "./compact-record.ts";

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
  /** Keys of the delegate that go if Legation wrote them, by the API server's record of field managers. */
  readonly ifOwned?: KeysOfMaps;
  /** Replacements if the member refuses the patch as a whole, so that one refused part does not block the others. */
  readonly apart?: readonly ForwardPatch[];
}

// Authors may write labels and container names of any number, and a delegate's annotations have 256 KiB in all.
const LONGEST_RECORD = 2048;

/** Writes the record of a delegate of this proxy, or of a copy. */
export function writeRecord(record: ForwardedRecord, proxy?: Pod): string {
  const text = record.keys === undefined ? recordText(record) : undefined;
  return text !== undefined && text.length <= LONGEST_RECORD ? text : recordText(compacted(record, proxy));
}

function recordText({
  keys,
  labels,
  annotations,
  gates = [],
  gatePrints = {},
  conditions,
  spec,
}: ForwardedRecord): string {
  const hasPrints = Object.keys(gatePrints).length > 0;
  return JSON.stringify({
    ...(keys === undefined ? { labels, annotations } : { keys }),
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

/** Returns what the delegate's annotation says of these pods. */
export function recordOf(proxy: Pod, delegate: Pod): ForwardedRecord {
  const record = readRecord(delegate.metadata?.annotations?.[FORWARDED_ANNOTATION]);
  return record.keys === undefined ? record : expanded(record, proxy, delegate);
}

/** Reports whether other keys were forwarded than these. Undefined if the record names them. */
export function keysDiffer({ keys }: ForwardedRecord, now: KeysOfMaps): boolean | undefined {
  return keys === undefined ? undefined : keys !== keysPrint(now);
}

function parseRecord(text: string): ForwardedRecord {
  const value = jsonOrNothing(text);
  if (!isJsonObject(value)) return NOTHING;
  const { keys, labels, annotations, gates, gatePrints, conditions, spec } = value;
  return {
    ...(typeof keys === "string" ? { keys } : {}),
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

function strings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
}

function textValues(value: object): Record<string, string> {
  return Object.fromEntries(Object.entries(value).filter(([, text]) => typeof text === "string"));
}
