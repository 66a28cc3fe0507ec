import { BaseSequencer, type TestSpecification } from "vitest/node";

/** Files on real nodes and others in turn, so that two workers seldom wait for the same clusters. */
export class AlternatingSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const isReal = ({ moduleId }: TestSpecification): boolean => moduleId.includes("/integration/real-nodes/");
    const real = sorted.filter(isReal);
    const others = sorted.filter((file) => !isReal(file));
    return Array.from({ length: Math.max(real.length, others.length) }).flatMap((_, index) =>
      [real[index], others[index]].filter((file) => file !== undefined),
    );
  }
}
