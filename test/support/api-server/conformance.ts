import { describeReads } from "./conformance/reads.ts";
import { type Scene, setScene } from "./conformance/suite.ts";
import { describeWatches } from "./conformance/watches.ts";
import { describeWrites } from "./conformance/writes.ts";

/** What this project relies on of an API server: each server that its tests run against passes these cases. */
export function apiServerConformance(setUp: () => Promise<Scene>): void {
  const suite = setScene(setUp);
  describeReads(suite);
  describeWrites(suite);
  describeWatches(suite);
}
