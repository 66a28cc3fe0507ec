import { freePort } from "../../support/clusters/ports.ts";
import type { Figure } from "../figures.ts";
import { connectToHeap } from "../heap.ts";
import { churnPods, type Program, withController } from "./controller-process.ts";
import { fleetOf } from "./fleet.ts";

export interface SoakOptions extends Program {
  /** Pods that come and go, in all. */
  readonly pods: number;
  readonly onProgress: (line: string) => void;
}

const ROUND = 300;
const PER_SECOND = 120;
const MEMBERS = 2;
const PROXIES = 200;
// Code is compiled and caches are filled by then.
const WARM = 0.25;
const PATIENCE_MS = 3_600_000;

/**
 * Measures what a controller keeps of pods that are gone: the live heap after a full collection, once a quarter of them
 * have come and gone, and once all have. Its API servers are one process that answers from memory.
 */
export async function benchSoak({ pods, onProgress, ...program }: SoakOptions): Promise<readonly Figure[]> {
  const rounds = Math.max(4, Math.round(pods / ROUND));
  const port = await freePort();
  const fleet = await fleetOf(MEMBERS, PROXIES);
  const inspected = { ...program, nodeFlags: [...program.nodeFlags, `--inspect=127.0.0.1:${port}`] };
  try {
    return await withController(fleet, inspected, PATIENCE_MS, async (controller) => {
      const comeAndGo = (prefix: string): Promise<void> =>
        churnPods(fleet, controller, { prefix, count: ROUND, perSecond: PER_SECOND });
      // The pod's Binding shows that the watches run.
      fleet.host.put("pods", fleet.pod("waiting"));
      await controller.firstBound;
      await comeAndGo("first");
      const heap = await connectToHeap(port);
      let warm = Number.NaN;
      for (let round = 1; round <= rounds; round += 1) {
        await comeAndGo(`soak-${round}`);
        if (round === Math.ceil(rounds * WARM)) warm = await heap.liveMb();
        onProgress(`${round * ROUND} of ${rounds * ROUND} pods have come and gone`);
      }
      const after = await heap.liveMb();
      heap.close();
      return [
        { name: `controller: live heap after ${Math.ceil(rounds * WARM) * ROUND} pods`, value: warm, unit: "MB" },
        {
          name: `controller: live heap after ${rounds * ROUND} pods / that`,
          value: after / warm,
          unit: "",
          target: { atMost: 1.1 },
        },
      ];
    });
  } finally {
    await fleet.close();
  }
}
