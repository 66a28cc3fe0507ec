import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files on real nodes and others in turn, so that two workers seldom wait for the same clusters. */
export class AlternatingSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const within = (folder: string) => sorted.filter(({ moduleId }) => moduleId.includes(folder));
    const integration = new Set(within("/test/integration/"));
    const real = within("/test/integration/real-nodes/");
    const shared = [...integration].filter((file) => !real.includes(file));
    const alternating = Array.from({ length: Math.max(real.length, shared.length) }).flatMap((_, index) =>
      [real[index], shared[index]].filter((file) => file !== undefined),
    );
    return [...sorted.filter((file) => !integration.has(file)), ...alternating];
  }
}
