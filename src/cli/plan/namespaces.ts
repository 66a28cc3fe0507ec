import { isDeepStrictEqual } from "node:util";
import { type DelegationMode, delegationModeOf } from "../../api/delegation-mode.ts";
import { DELEGATION_LABEL } from "../../api/keys.ts";
import type { Namespace, Stored } from "../../api/kubernetes.ts";
import type { WrittenObject } from "../shared/documents.ts";
import type { DryRunAnswer } from "./dry-run.ts";
import { ofCore } from "./manifest.ts";
import type { WorkloadPlan } from "./outcome.ts";

export interface PlannedNamespaces {
  /** The namespaces once the manifest is applied. */
  readonly after: readonly Stored<Namespace>[];
  /** Why the API server refuses a namespace of the manifest, by name: it stays as it is. */
  readonly refused: ReadonlyMap<string, string>;
  /** Names that the manifest creates or changes: a dry-run of their pods would go by what they are now. */
  readonly changed: ReadonlySet<string>;
  readonly notChecked: readonly string[];
}

/** Applies the namespaces of a manifest, wherever in it they stand. `ask` asks the API server about one that is new or changes. */
export async function planNamespaces(
  stored: readonly Stored<Namespace>[],
  objects: readonly WrittenObject[],
  ask: (namespace: Stored<Namespace>) => Promise<DryRunAnswer<Stored<Namespace>>>,
): Promise<PlannedNamespaces> {
  const all = new Map(stored.map((namespace) => [namespace.metadata.name, namespace]));
  const refused = new Map<string, string>();
  const changed = new Set<string>();
  const notChecked: string[] = [];
  for (const { metadata } of ofCore("Namespace", objects)) {
    const { name, labels, annotations } = metadata;
    if (name === undefined) continue;
    const before = all.get(name)?.metadata;
    const known = before ?? { name, uid: `planned/${name}`, resourceVersion: "" };
    const after = {
      ...known,
      ...(labels === undefined ? {} : { labels: { ...known.labels, ...labels } }),
      ...(annotations === undefined ? {} : { annotations: { ...known.annotations, ...annotations } }),
    };
    if (isDeepStrictEqual(before, after)) continue;
    const answer = await ask({ metadata: after });
    if (answer.is === "refused") {
      refused.set(name, answer.message);
      continue;
    }
    if (answer.is === "notChecked") notChecked.push(`namespace ${name}: ${answer.why}`);
    all.set(name, answer.is === "admitted" ? answer.object : { metadata: after });
    changed.add(name);
  }
  return { after: [...all.values()], refused, changed, notChecked };
}

/** Returns the namespace's mode of delegation, or why nothing is delegated there. `otherwise`: what becomes of an object without one. */
export function modeOf(
  name: string,
  { after, refused }: PlannedNamespaces,
  otherwise: string,
): DelegationMode | Pick<WorkloadPlan, "outcome" | "message"> {
  const namespace = after.find(({ metadata }) => metadata.name === name);
  if (namespace === undefined) {
    const message = refused.has(name)
      ? `namespace ${name} would be refused itself`
      : `namespace ${name} is neither on the host nor in the manifest; create it, or name another`;
    return { outcome: "refused", message };
  }
  if (namespace.metadata.deletionTimestamp !== undefined) {
    return { outcome: "refused", message: `namespace ${name} is being deleted: nothing new is let in` };
  }
  const message = `namespace ${name} has no label ${DELEGATION_LABEL}: ${otherwise}`;
  return delegationModeOf(namespace.metadata.labels) ?? { outcome: "notDelegated", message };
}
