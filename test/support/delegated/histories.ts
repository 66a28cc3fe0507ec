import { onTestFinished } from "vitest";
import type { Pod } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { pods } from "../../../src/kube/resources.ts";
import { realClock } from "../../../src/runtime/clock.ts";
import { Reflector } from "../../../src/runtime/reflector.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";

/** What was seen of one pod, by its uid never mistaken for another of its name. */
export interface PodHistory {
  readonly name: string;
  /** Its node, once it has one. */
  node?: string;
  /** Every phase that it was seen in, and since when; epoch ms. */
  readonly phases: { readonly phase: string; readonly at: number }[];
}

/** Watches a namespace until the test ends; the histories of all pods it ever shows, by uid. */
export async function watchPods(
  client: ClusterClient,
  namespace: string,
): Promise<ReadonlyMap<string, Readonly<PodHistory>>> {
  const histories = new Map<string, PodHistory>();
  const reflector = new Reflector<Pod>({
    client,
    resource: pods,
    namespace,
    clock: realClock,
    log: createLogger({ level: "silent" }),
    onEvent: ({ object: { metadata, spec, status } }) => {
      const history = histories.get(metadata.uid) ?? { name: metadata.name, phases: [] };
      histories.set(metadata.uid, history);
      if (spec?.nodeName !== undefined) history.node = spec.nodeName;
      const phase = status?.phase ?? "None";
      if (history.phases.at(-1)?.phase !== phase) history.phases.push({ phase, at: realClock.now() });
    },
  });
  reflector.start();
  onTestFinished(() => reflector.stop());
  await reflector.whenSynced();
  return histories;
}
