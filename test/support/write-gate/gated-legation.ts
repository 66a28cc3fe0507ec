import { afterAll, beforeAll } from "vitest";
import { createClusterClient } from "../../../src/kube/http-client.ts";
import { loadKubeConfig } from "../../../src/kube/kubeconfig.ts";
import { cleanUpFile } from "../harness/after-file.ts";
import { hostCluster, memberCluster } from "../harness/clusters.ts";
import { type Legation, startLegation } from "../legation/start.ts";
import { redirect, type Server } from "./redirect.ts";
import { type ReadTrap, startWriteGate, type Trap, type Write, type WriteGate } from "./write-gate.ts";

/** Legation whose controller reaches each cluster through a write gate. */
export interface GatedLegation {
  readonly legation: Legation;
  /** Sets a trap for one write to the host, or to whichever member; the callback is told which cluster's it was. */
  trap(where: "host" | "member", trap: ClusterTrap): void;
  /** Sets the trap for reads of a member. */
  trapReads(member: string, trap: ReadTrap): void;
  /** Takes all traps away. */
  release(): void;
}

type ClusterTrap = Omit<Trap, "onCaught"> & {
  readonly onCaught: (cluster: string) => Promise<void>;
  /** Limits the trap to one namespace, where tests run at the same time. Default: all namespaces. */
  readonly namespace?: string;
};
/** Runs it for all tests of a file; afterwards the members are joined as they were. */
export function useGatedLegation(): () => GatedLegation {
  const members = { west: memberCluster("west"), east: memberCluster("east") };
  const cleanUps: (() => Promise<void>)[] = [];
  let gated: GatedLegation | undefined;
  beforeAll(async () => {
    const host = hostCluster();
    const gate = async (cluster: Server): Promise<WriteGate> => {
      const made = await startWriteGate(cluster);
      cleanUps.push(() => made.close());
      return made;
    };
    const hostGate = await gate(host);
    const legation = await startLegation({ host, members, controllerServer: hostGate });
    cleanUps.push(() => legation.stop());
    const client = createClusterClient({
      cluster: host.name,
      credentials: loadKubeConfig({ kubeconfig: host.kubeconfig, env: {} }),
    });
    cleanUps.push(() => client.close());
    const memberGates = new Map<string, WriteGate>();
    for (const [name, member] of Object.entries(members)) {
      const memberGate = await gate(member);
      memberGates.set(name, memberGate);
      const reach = async (server: Server): Promise<void> => {
        await redirect(client, name, server);
        await legation.agents.get(name)?.reach(server);
      };
      await reach(memberGate);
      cleanUps.push(() => reach({ server: member.proxiedServer, caData: member.caData }));
    }
    const release = (): void => {
      for (const each of [hostGate, ...memberGates.values()]) each.release();
    };
    gated = {
      legation,
      release,
      trapReads: (member, reads) => memberGates.get(member)?.setReads(reads),
      trap: (where, { catches, onCaught, namespace, ...how }) => {
        let sprung = false;
        const once = (write: Write): boolean => {
          if (sprung) return false;
          sprung = catches(write);
          return sprung;
        };
        if (namespace === undefined) release();
        const gates = where === "host" ? new Map([["host", hostGate]]) : memberGates;
        for (const [name, each] of gates) {
          each.set(namespace ?? "", { ...how, catches: once, onCaught: () => onCaught(name) });
        }
      },
    };
  });
  afterAll(async () => {
    // While proxies can still be released.
    await cleanUpFile();
    for (const cleanUp of cleanUps.reverse()) await cleanUp();
  });
  return () => {
    if (gated === undefined) throw new Error("Legation runs from the file's beforeAll on: call this in a test.");
    return gated;
  };
}
