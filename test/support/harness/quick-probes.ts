import { afterAll, beforeAll } from "vitest";
import { hostCluster } from "./clusters.ts";
import { kubectl } from "./kubectl.ts";

/** Shortens probes of joined members until the file or `describe` ends. A busy machine may still need a second. */
export function useQuickProbes(members: readonly string[] = ["west", "east"]): void {
  const probe = (spec: object): Promise<string> =>
    kubectl(hostCluster(), [
      ...["patch", "clusters.legation.dev", ...members, "--type=merge"],
      `--patch=${JSON.stringify({ spec })}`,
    ]);
  beforeAll(() => probe({ probe: { periodSeconds: 2, timeoutSeconds: 4, failureThreshold: 2 } }));
  afterAll(() => probe({ probe: null }));
}
