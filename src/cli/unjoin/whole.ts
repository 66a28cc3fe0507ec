import type { KubeObject } from "../../api/kubernetes.ts";
import type { ClusterClient } from "../../kube/client.ts";
import { listAll } from "../../kube/list.ts";
import { WHOLE_SELECTOR } from "../../whole/jobs/kind.ts";
import { WHOLE_TYPES } from "../../whole/types.ts";
import { type FoundWhole, wholeName } from "../member/delegated.ts";
import type { HostContext } from "../shared/session.ts";
import { until, type WaitOptions } from "../shared/wait.ts";

// Each poll lists the whole Jobs of all members.
const POLL_MS = 2000;

/** Lists what the member has whole, or has a share of, and what has not finished there. */
export async function unfinishedWhole(
  host: ClusterClient,
  member: string,
  signal: AbortSignal,
): Promise<readonly FoundWhole[]> {
  const found = WHOLE_TYPES.map(async (type) => {
    const objects = await listAll(host, type.resource, { labelSelector: WHOLE_SELECTOR, signal });
    const isThere = (one: KubeObject): boolean => type.membersOf(one).includes(member) && !type.isFinished(one);
    const open = objects.filter((one) => isThere(one) && !type.isFinishedIn(one, member));
    return open.map((object) => ({ type, object }));
  });
  return (await Promise.all(found)).flat();
}

/** Waits until what the member has whole has finished. Resolves to the rest on timeout. */
export async function waitForWhole(
  host: ClusterClient,
  member: string,
  { signal, report, ...options }: WaitOptions & Pick<HostContext, "signal" | "report">,
): Promise<readonly FoundWhole[]> {
  let rest = await unfinishedWhole(host, member, signal);
  await until(
    async () => {
      const before = rest.map(wholeName);
      rest = await unfinishedWhole(host, member, signal);
      const left = new Set(rest.map(wholeName));
      for (const name of before) if (!left.has(name)) report(`${name} has finished`);
      return left.size === 0;
    },
    { intervalMs: POLL_MS, signal, ...options },
  );
  return rest;
}
