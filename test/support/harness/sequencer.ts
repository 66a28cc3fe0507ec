import { BaseSequencer, type TestSpecification } from "vitest/node";
import { isOnRealNodes } from "./place-of-file.ts";

/** One file on real nodes, then two on shared clusters, and so on: workers seldom wait for the same clusters. */
export class AlternatingSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const integration = sorted.filter(({ moduleId }) => moduleId.includes("/test/integration/"));
    const real = integration.filter(({ moduleId }) => isOnRealNodes(moduleId));
    const shared = integration.filter(({ moduleId }) => !isOnRealNodes(moduleId));
    const rounds = Math.max(real.length, Math.ceil(shared.length / 2));
    const alternating = Array.from({ length: rounds }).flatMap((_, round) =>
      [real[round], shared[2 * round], shared[2 * round + 1]].filter((file) => file !== undefined),
    );
    return [...sorted.filter((file) => !integration.includes(file)), ...alternating];
  }
}
