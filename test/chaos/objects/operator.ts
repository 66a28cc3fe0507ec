import { setTimeout as sleep } from "node:timers/promises";
import type { AnyObject } from "../../../src/api/delegated-type.ts";
import { isJsonObject } from "../../../src/api/json.ts";
import type { Stored } from "../../../src/api/kubernetes.ts";
import type { ClusterClient } from "../../../src/kube/client.ts";
import { ownerOf } from "../../../src/pods/delegate.ts";
import { CUSTOM_KINDS, KINDS, type Kind } from "./kinds.ts";

const PAUSE_MS = 300;

/** Plays the operator of the custom kinds in one member: writes the status of each copy that it has not observed yet. */
export function startOperator(client: ClusterClient, namespace: string): { readonly stop: () => Promise<void> } {
  const ending = new AbortController();
  const { signal } = ending;
  const turns = async (): Promise<void> => {
    while (!signal.aborted) {
      // A member that does not answer is asked again.
      for (const kind of CUSTOM_KINDS) await observe(client, namespace, kind).catch(() => undefined);
      await sleep(PAUSE_MS, undefined, { signal }).catch(() => undefined);
    }
  };
  const running = turns();
  return {
    stop: async () => {
      ending.abort();
      await running;
    },
  };
}

async function observe(client: ClusterClient, namespace: string, kind: Kind): Promise<void> {
  const { items } = await client.list(KINDS[kind], { namespace, timeoutMs: 5_000 });
  for (const copy of items.filter((one) => ownerOf(one) !== undefined && !isObserved(one))) {
    await writeStatus(client, kind, copy, true).catch(() => undefined);
  }
}

/** Writes the status of one copy, as its operator sees it now. */
export async function writeStatus(
  client: ClusterClient,
  kind: Kind,
  copy: Stored<AnyObject>,
  isReady: boolean,
): Promise<void> {
  const { namespace = "", name, uid, generation, resourceVersion } = copy.metadata;
  const spec = isJsonObject(copy.spec) ? copy.spec : {};
  const status = {
    observedGeneration: generation,
    seen: spec.version,
    phase: isReady ? "Up" : "Down",
    readyReplicas: isReady ? spec.parts : 0,
    conditions: [
      {
        type: "Ready",
        status: isReady ? "True" : "False",
        reason: isReady ? "Works" : "Stopped",
        message: "",
        observedGeneration: generation,
        lastTransitionTime: new Date().toISOString(),
      },
    ],
  };
  const body = { metadata: { uid, resourceVersion }, status };
  await client.patch(KINDS[kind], { namespace, name }, { type: "merge", body }, { subresource: "status" });
}

/** Reports whether the operator has observed the copy as it is. */
export function isObserved({ metadata, status }: Stored<AnyObject>): boolean {
  return isJsonObject(status) && status.observedGeneration === metadata.generation;
}
