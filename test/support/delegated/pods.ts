import { DELEGATE_ANNOTATION } from "../../../src/api/keys.ts";
import type { Pod, PodSpec } from "../../../src/api/kubernetes.ts";

/** Overrides of a delegated pod's defaults. */
export interface DelegatedPodParts {
  readonly annotations?: Readonly<Record<string, string>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly spec?: Partial<PodSpec>;
}

/** A bare pod that asks to be delegated, as its author writes it. */
export function delegatedPod(namespace: string, name: string, parts: DelegatedPodParts = {}): Pod {
  const { annotations = {}, labels = {}, spec = {} } = parts;
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { namespace, name, labels, annotations: { [DELEGATE_ANNOTATION]: "true", ...annotations } },
    spec: { containers: [{ name: "main", image: "work:1" }], ...spec },
  };
}

/** Returns the number of pods per phase. */
export function countPhases(pods: readonly Pod[]): Record<string, number> {
  const phases: Record<string, number> = {};
  for (const { status } of pods) {
    const phase = status?.phase ?? "None";
    phases[phase] = (phases[phase] ?? 0) + 1;
  }
  return phases;
}

/** `NAME-0`, `NAME-1` and so on. */
export function numbered(name: string, count: number): string[] {
  return Array.from({ length: count }, (_, index) => `${name}-${index}`);
}
