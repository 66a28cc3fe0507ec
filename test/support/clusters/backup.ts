import { cpSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Cluster } from "./types.ts";

/** A snapshot of etcd. */
export interface Backup extends Disposable {
  /**
   * Puts it back as an operator does: everything that reads the API is stopped, and started again on what was restored.
   * Resource versions go backwards.
   */
  restore(): Promise<void>;
}

/** Copies etcd's files while it is frozen, like a volume snapshot: they include the write-ahead log. */
export async function backUp(cluster: Cluster): Promise<Backup> {
  const data = join(cluster.directory, "etcd");
  const copy = join(cluster.directory, "etcd.backup");
  rmSync(copy, { recursive: true, force: true });
  await cluster.etcd.freeze();
  try {
    cpSync(data, copy, { recursive: true });
  } finally {
    await cluster.etcd.thaw();
  }
  return {
    restore: async () => {
      const planes = [cluster.kwok, cluster.scheduler, cluster.controllerManager, cluster.apiServer, cluster.etcd];
      await Promise.all(planes.map((plane) => plane.stop("SIGKILL")));
      rmSync(data, { recursive: true });
      cpSync(copy, data, { recursive: true });
      await cluster.mend();
    },
    [Symbol.dispose]: () => rmSync(copy, { recursive: true, force: true }),
  };
}
