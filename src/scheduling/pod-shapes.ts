import { OVERRIDES_ANNOTATION } from "../api/keys.ts";
import type { Pod, Stored } from "../api/kubernetes.ts";
import { setLatest } from "../api/latest-entries.ts";
import type { SharedBy } from "./placement-view.ts";

/** Texts that are equal for pods with the same spec, or with the same spec and labels. */
export type PodShape = Readonly<Record<SharedBy, string>>;

// Shapes kept per member; the one that was set first is forgotten first.
const KEPT = 1000;
const TOKEN_VOLUME = "kube-api-access-";
// Labels by which controllers number their pods.
const OWN_LABELS: ReadonlySet<string> = new Set([
  "apps.kubernetes.io/pod-index",
  "batch.kubernetes.io/job-completion-index",
  "statefulset.kubernetes.io/pod-name",
]);

/** Returns the parts by which members may tell pods apart: the spec without the pod's own name, overrides, and labels. */
export function shapeOf({ metadata, spec }: Stored<Pod>): PodShape {
  const overrides = metadata.annotations?.[OVERRIDES_ANNOTATION];
  // A pod that was bound first has its node before the member's scheduler is asked.
  const { hostname: _hostname, nodeName: _node, ...shared } = spec ?? {};
  const text = JSON.stringify([metadata.namespace, overrides, shared], (_key, value: unknown) =>
    typeof value === "string" && value.startsWith(TOKEN_VOLUME) ? TOKEN_VOLUME : value,
  );
  const labels = Object.entries(metadata.labels ?? {}).filter(([key]) => !OWN_LABELS.has(key));
  return { spec: text, labels: `${text}${JSON.stringify(labels.sort())}` };
}

/** Facts of members by the shape of pods. Bounded per member. */
export class ShapeMap<T> {
  readonly #members = new Map<string, Map<string, T>>();

  get empty(): boolean {
    return this.#members.size === 0;
  }

  get(member: string, shape: string): T | undefined {
    return this.#members.get(member)?.get(shape);
  }

  set(member: string, shape: string, value: T): void {
    const shapes = this.#members.get(member) ?? new Map<string, T>();
    this.#members.set(member, shapes);
    setLatest(shapes, shape, value, KEPT);
  }

  /** Returns false when there was nothing. */
  delete(member: string, shape: string): boolean {
    const shapes = this.#members.get(member);
    const known = shapes?.delete(shape) === true;
    if (shapes?.size === 0) this.#members.delete(member);
    return known;
  }
}
