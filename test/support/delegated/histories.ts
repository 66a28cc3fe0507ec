import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";

/** The observed history of one pod, by uid. */
export interface PodHistory {
  readonly name: string;
  /** The pod's node, once bound. */
  node?: string;
  /** Every phase that it was seen in, and since when; epoch ms. */
  readonly phases: { readonly phase: string; readonly at: number }[];
  /** The pod was seen unbound with `PodScheduled` True, or bound without. */
  misscheduled?: true;
}

/** The histories of all pods that were ever seen, by uid. */
export type PodHistories = ReadonlyMap<string, Readonly<PodHistory>>;

/** Watches a namespace until stopped. Calls `onChange` with all its pods after each change. */
export async function watchPods(
  client: ClusterClient,
  namespace: string,
  onChange: (pods: readonly Stored<Pod>[]) => void = () => {},
): Promise<{ readonly histories: PodHistories; readonly stop: () => Promise<void> }> {
  const histories = new Map<string, PodHistory>();
  const reflector: Reflector<Pod> = new Reflector<Pod>({
    client,
    resource: pods,
    namespace,
    clock: realClock,
    log: createLogger({ level: "silent" }),
    onEvent: ({ object: { metadata, spec, status } }) => {
      const history = histories.get(metadata.uid) ?? { name: metadata.name, phases: [] };
      histories.set(metadata.uid, history);
      if (spec?.nodeName !== undefined) history.node = spec.nodeName;
      const scheduled = status?.conditions?.find(({ type }) => type === "PodScheduled")?.status === "True";
      if (scheduled !== (spec?.nodeName !== undefined)) history.misscheduled = true;
      const phase = status?.phase ?? "None";
      if (history.phases.at(-1)?.phase !== phase) history.phases.push({ phase, at: realClock.now() });
      if (reflector.store.synced) onChange(reflector.store.list());
    },
  });
  reflector.start();
  await reflector.whenSynced();
  return { histories, stop: () => reflector.stop() };
}
