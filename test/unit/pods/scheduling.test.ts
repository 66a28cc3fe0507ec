import { expect, test } from "vitest";
import type { Pod, Stored } from "../../../src/api/kubernetes.ts";
import { byPrecedence } from "../../../src/pods/scheduling.ts";
import { pod } from "../../support/builders/pod.ts";

function waiting(name: string, creationTimestamp: string, priority?: number): Stored<Pod> {
  const made = pod({ name, spec: { containers: [], ...(priority === undefined ? {} : { priority }) } });
  return { ...made, metadata: { ...made.metadata, creationTimestamp } };
}

test("orders pods by priority, then by age, then stably", () => {
  const pods = [
    waiting("below", "2025-01-01T00:00:00Z", -1),
    waiting("none", "2026-01-01T00:00:01Z"),
    waiting("zero", "2026-01-01T00:00:00Z", 0),
    waiting("zero-too", "2026-01-01T00:00:00Z", 0),
    waiting("above", "2026-02-01T00:00:00Z", 5),
  ];
  const sorted = pods.sort(byPrecedence).map(({ metadata }) => metadata.name);
  expect(sorted).toEqual(["above", "zero", "zero-too", "none", "below"]);
});
