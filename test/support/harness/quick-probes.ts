import { afterAll, beforeAll } from "vitest";
import { hostCluster } from "./clusters.ts";
import { kubectl } from "./kubectl.ts";

/**
 * Members that joined are missed sooner than in production, until the file or the enclosing `describe` ends. A busy
 * machine may still take a second to answer.
 */
export function useQuickProbes(members: readonly string[] = ["west", "east"]): void {
  const probe = (spec: object): Promise<string> =>
    kubectl(hostCluster(), [
      ...["patch", "clusters.legation.dev", ...members, "--type=merge"],
      `--patch=${JSON.stringify({ spec })}`,
    ]);
  beforeAll(() => probe({ probe: { periodSeconds: 2, timeoutSeconds: 4, failureThreshold: 2 } }));
  afterAll(() => probe({ probe: null }));
}
