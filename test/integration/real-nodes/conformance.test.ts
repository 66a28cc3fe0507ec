import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { compare } from "../../support/conformance/compare.ts";
import { KNOWN_DIFFERENCES } from "../../support/conformance/differences.ts";
import { SCENARIOS } from "../../support/conformance/scenarios.ts";
import { transcribe } from "../../support/conformance/transcript.ts";
import { onRealNodes } from "../../support/harness/real-nodes.ts";

// Runs the same manifests and kubectl calls on a plain cluster with a real node and through Legation: a user sees
// the same on the terminal, or a difference that the documentation lists.

const DOCUMENT = new URL("../../../docs/conformance.md", import.meta.url);

test("documents every remaining difference and its reason, and no other", () => {
  const headings = [...readFileSync(DOCUMENT, "utf8").matchAll(/^### `(.+)`$/gm)].map(([, id]) => id);
  expect(headings).toEqual(KNOWN_DIFFERENCES.map(({ id }) => id));
});

onRealNodes((realNodes) => {
  const met = new Set<string>();

  test.concurrent.for(SCENARIOS)(
    "looks the same: $name",
    { timeout: 600_000 },
    async (scenario, { onTestFinished }) => {
      // Containers and probes of a scenario that has ended would take processor time from the others.
      const { plain, delegating } = await realNodes().places({ onFinished: onTestFinished });
      const [expected, seen] = await Promise.all([
        transcribe(scenario, plain, "plain"),
        transcribe(scenario, delegating, "legation"),
      ]);
      const { unexplained, known } = compare(expected, seen, KNOWN_DIFFERENCES);
      for (const id of known) met.add(id);
      expect(unexplained).toEqual([]);
    },
  );

  // Last: a known difference that no scenario shows any more is removed from the list.
  test("shows every known difference", () => {
    expect([...met].sort()).toEqual(KNOWN_DIFFERENCES.map(({ id }) => id).sort());
  });
});
