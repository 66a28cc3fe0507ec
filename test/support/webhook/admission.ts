import { setTimeout as sleep } from "node:timers/promises";
import { DELEGATION_LABEL, PROXY_LABEL } from "../../../src/api/keys.ts";
import type { Cluster } from "../clusters/types.ts";
import { delegatedPod } from "../delegated/pods.ts";
import { freshNamespace } from "../harness/namespace.ts";
import { submit } from "./submit.ts";

const PAUSE_MS = 100;

/** Creates a namespace whose annotated pods become proxies. The host's end is its end. */
export function annotatedNamespace(host: Cluster, prefix: string): Promise<string> {
  return freshNamespace(host, { prefix, labels: { [DELEGATION_LABEL]: "annotated" }, onFinished: () => {} });
}

/** Does some work while pods are created by dry runs, one after another. Rejects if one of them becomes no proxy. */
export async function whileAdmitting(host: Cluster, namespace: string, work: () => Promise<void>): Promise<void> {
  const path = `/api/v1/namespaces/${namespace}/pods?dryRun=All`;
  const pod = delegatedPod(namespace, "asks");
  const failures: string[] = [];
  let admitted = 0;
  let ended = false;
  const ask = async (): Promise<void> => {
    while (!ended) {
      const { status, body } = await submit(host, "POST", path, pod);
      if (status === 201 && body.metadata?.labels?.[PROXY_LABEL] !== undefined) admitted += 1;
      else failures.push(body.message ?? `created without ${PROXY_LABEL}`);
      await sleep(PAUSE_MS);
    }
  };
  const asking = ask();
  try {
    await work();
  } finally {
    ended = true;
    await asking;
  }
  if (failures.length === 0 && admitted > 0) return;
  throw new Error(
    `${admitted} pods became proxies, and ${failures.length} did not: ${failures.slice(0, 3).join("; ")}`,
  );
}
