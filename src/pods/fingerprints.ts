import { sortedKeys } from "../api/json.ts";
import type { Pod, PodSpec } from "../api/kubernetes.ts";
import { forwardedTolerations } from "./failover.ts";

export type Fingerprints = Readonly<Record<string, string>>;

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
