import type { Pod } from "../api/kubernetes.ts";
import { type Fingerprints, fingerprint, fingerprints } from "./fingerprints.ts";

export interface KeysOfMaps {
  readonly labels: readonly string[];
  readonly annotations: readonly string[];
}

/** The content of a delegate's annotation `legation.dev/forwarded`. */
export interface ForwardedRecord extends KeysOfMaps {
  /** A digest of the keys in place of the keys, where all of them are too long for a record. */
  readonly keys?: string;
  readonly gates?: readonly string[];
  /** Fingerprints of these conditions as both sides last had them. */
  readonly gatePrints?: Fingerprints;
  /** Undefined in records of 0.1, which copied all conditions. */
  readonly conditions?: readonly string[];
  readonly spec?: Fingerprints;
}

// Containers share a slot when there are more: a change of one forwards the other's part, too, where the delegate's differs.
const SLOTS = 32;
// Of further gates the later change counts, as without a record.
const MOST_GATES = 16;
const MOST_CONDITIONS = 32;
// Precedes the fingerprint of a slot that is not what the proxy says now.
const EARLIER = "=";

/**
 * Returns a record of bounded length: a digest of the keys, and parts by position instead of name. Whose a key is tells
 * `metadata.managedFields` of the delegate.
 */
export function compacted(record: ForwardedRecord, proxy: Pod | undefined): ForwardedRecord {
  const { labels, annotations, keys = keysPrint({ labels, annotations }) } = record;
  const { gates, gatePrints, conditions, spec } = record;
  const position = (type: string): string[] => {
    const index = gateTypes(proxy).indexOf(type);
    return index < 0 ? [] : [`#${index}`];
  };
  return {
    keys,
    labels: [],
    annotations: [],
    ...(gates === undefined ? {} : { gates: gates.flatMap(position) }),
    ...(gatePrints === undefined
      ? {}
      : {
          gatePrints: Object.fromEntries(
            Object.entries(gatePrints).flatMap(([type, print]) => position(type).map((at) => [at, print])),
          ),
        }),
    ...(conditions === undefined ? {} : { conditions: conditions.slice(0, MOST_CONDITIONS).map(fingerprint) }),
    ...(spec === undefined || proxy === undefined ? {} : { spec: inSlots(spec, proxy) }),
  };
}

/** Returns the record that `compacted` made compact, as far as it says anything of these pods. The keys stay a digest. */
export function expanded(record: ForwardedRecord, proxy: Pod, delegate: Pod): ForwardedRecord {
  const { gates = [], gatePrints = {}, conditions, spec } = record;
  const types = gateTypes(proxy);
  const typeAt = (at: string): string[] => types.flatMap((type, index) => (at === `#${index}` ? [type] : []));
  const present = [...(proxy.status?.conditions ?? []), ...(delegate.status?.conditions ?? [])];
  const typeOf = new Map(present.map(({ type }) => [fingerprint(type), type]));
  return {
    ...record,
    gates: gates.flatMap(typeAt),
    gatePrints: Object.fromEntries(
      Object.entries(gatePrints).flatMap(([at, print]) => typeAt(at).map((type) => [type, print])),
    ),
    ...(conditions === undefined ? {} : { conditions: conditions.flatMap((print) => typeOf.get(print) ?? []) }),
    ...(spec === undefined ? {} : { spec: byPath(spec, proxy) }),
  };
}

export function keysPrint({ labels, annotations }: Pick<ForwardedRecord, "labels" | "annotations">): string {
  return fingerprint([labels.toSorted(), annotations.toSorted()]);
}

function gateTypes({ spec }: Pod = {}): string[] {
  return (spec?.readinessGates ?? []).slice(0, MOST_GATES).map(({ conditionType }) => conditionType);
}

function inSlots(prints: Fingerprints, proxy: Pod): Fingerprints {
  const now = fingerprints(proxy);
  return Object.fromEntries(
    [...slotsOf(proxy)].flatMap(([slot, paths]) => {
      if (paths.every((path) => prints[path] === now[path])) return [[slot, printOf(paths, now)]];
      const earlier = paths.map((path) => prints[path]).find((print) => print?.startsWith(EARLIER));
      return earlier === undefined ? [] : [[slot, earlier.slice(EARLIER.length)]];
    }),
  );
}

function byPath(slots: Fingerprints, proxy: Pod): Fingerprints {
  const now = fingerprints(proxy);
  return Object.fromEntries(
    [...slotsOf(proxy)].flatMap(([slot, paths]) => {
      const print = slots[slot];
      if (print === undefined) return [];
      const isNow = print === printOf(paths, now);
      return paths.map((path) => [path, isNow ? (now[path] ?? "") : EARLIER + print]);
    }),
  );
}

function printOf(paths: readonly string[], prints: Fingerprints): string {
  return fingerprint(paths.map((path) => prints[path]));
}

/** Returns the paths of each slot. Containers keep their positions for a pod's life; no ephemeral one changes. */
function slotsOf(proxy: Pod): ReadonlyMap<string, readonly string[]> {
  const { initContainers = [], containers = [] } = proxy.spec ?? {};
  const positions = new Map([...initContainers, ...containers].map(({ name }, index) => [name, index % SLOTS]));
  const slots = new Map<string, string[]>();
  for (const path of Object.keys(fingerprints(proxy))) {
    const [part = "", name] = path.split("/");
    if (part === "ephemeral") continue;
    const slot = name === undefined ? part : `${part}/#${positions.get(name)}`;
    slots.set(slot, [...(slots.get(slot) ?? []), path]);
  }
  return slots;
}
