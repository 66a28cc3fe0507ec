import type { Cluster } from "../support/clusters/types.ts";
import type { Legation } from "../support/legation/start.ts";
import { burst, clientOf } from "./bursts.ts";
import type { Figure } from "./figures.ts";
import { giveShares, processesOf, sharesImpossible } from "./shares.ts";

export interface SharesBenchOptions {
  readonly host: Cluster;
  readonly members: readonly Cluster[];
  readonly legation: Legation;
  readonly pods: number;
  readonly onProgress: (line: string) => void;
  readonly onFigure: (figure: Figure) => void;
}

// Shares of two cores: three clusters and Legation have one each, and the client has the rest.
const CORES_EACH = 0.4;

/**
 * The comparison of `benchDelegation` with every control plane as if on a machine of its own: each has the same share of the
 * processor, and so have Legation's two processes together. No cluster is faster because another is idle.
 */
export async function benchShares(options: SharesBenchOptions): Promise<void> {
  const { host, members, legation, pods, onProgress, onFigure } = options;
  const obstacle = sharesImpossible();
  if (obstacle !== undefined) return onProgress(`a share of the processor for each cluster: ${obstacle}`);
  const clients = [host, ...members].map(clientOf);
  const [hostClient, directClient] = clients;
  if (hostClient === undefined || directClient === undefined) throw new Error("a comparison needs a host and a member");
  const own = [legation.controller.pid, legation.webhook.pid].filter((pid) => pid !== undefined);
  const groups = [host, ...members].map(({ name, directory }) => ({ name, pids: processesOf(directory) }));
  const undo = giveShares([...groups, { name: "legation", pids: own }], CORES_EACH);
  try {
    const best = { direct: 0, delegated: 0 };
    for (let round = 1; round <= 2; round++) {
      onProgress(`${pods} pods, ${CORES_EACH} cores for each cluster, round ${round}: created in ${members[0]?.name}`);
      best.direct = Math.max(best.direct, await burst(directClient, [], pods, "direct"));
      onProgress(`${pods} pods, ${CORES_EACH} cores for each cluster, round ${round}: delegated`);
      best.delegated = Math.max(best.delegated, await burst(hostClient, clients.slice(1), pods, "delegated"));
    }
    const shares = `${pods} pods, a share for each cluster`;
    onFigure({ name: `${shares}: created directly`, value: best.direct, unit: "pods/s" });
    onFigure({ name: `${shares}: delegated`, value: best.delegated, unit: "pods/s" });
    const ratio = best.delegated / best.direct;
    onFigure({ name: `${shares}: delegated / direct`, value: ratio, unit: "", target: { atLeast: 0.9 } });
  } finally {
    undo();
    await Promise.all(clients.map((client) => client.close()));
  }
}
