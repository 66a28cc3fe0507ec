import { BaseSequencer, type TestSpecification } from "vitest/node";
import { inOrder } from "./order.ts";
import { needsUnused, placeOf } from "./place-of-file.ts";
import { secondsOf } from "./seconds.ts";

/** Integration tests in an order in which workers seldom wait for the same clusters, and all clusters have done at about the same time. */
export class EvenSequencer extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const sorted = await super.sort(files);
    const integration = sorted.filter(({ moduleId }) => moduleId.includes("/test/integration/"));
    const timed = integration.map((file) => ({
      file,
      place: placeOf(file.moduleId),
      seconds: secondsOf(file.moduleId),
      first: needsUnused(file.moduleId),
    }));
    return [...sorted.filter((file) => !integration.includes(file)), ...inOrder(timed).map(({ file }) => file)];
  }
}
