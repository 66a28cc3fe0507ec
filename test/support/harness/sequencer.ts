import { BaseSequencer, type TestSpecification } from "vitest/node";
import { hasOwnClusters, isOnRealNodes, needsPristine } from "./place-of-file.ts";

/** Files of each kind at an even pace: workers seldom wait for the same clusters, and all kinds end at about the same time. */
export class EvenSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const integration = sorted.filter(({ moduleId }) => moduleId.includes("/test/integration/"));
    const own = integration.filter(({ moduleId }) => hasOwnClusters(moduleId));
    const real = integration.filter(({ moduleId }) => isOnRealNodes(moduleId) && !hasOwnClusters(moduleId));
    const shared = integration.filter(({ moduleId }) => !isOnRealNodes(moduleId));
    const pristine = shared.filter(({ moduleId }) => needsPristine(moduleId));
    const others = shared.filter((file) => !pristine.includes(file));
    // They have one of the sets to themselves at first.
    const simulated = [
      ...pristine.flatMap((file, number) => [file, ...others.slice(number, number + 1)]),
      ...others.slice(pristine.length),
    ];
    const paced = [own, real, simulated].flatMap((kind) =>
      kind.map((file, number) => ({ file, at: (number + 0.5) / kind.length })),
    );
    paced.sort((a, b) => a.at - b.at);
    return [...sorted.filter((file) => !integration.includes(file)), ...paced.map(({ file }) => file)];
  }
}
