import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { compare } from "../../support/conformance/compare.ts";
import { KNOWN_DIFFERENCES } from "../../support/conformance/differences.ts";
import { SCENARIOS } from "../../support/conformance/scenarios.ts";
import { transcribe } from "../../support/conformance/transcript.ts";
import { onRealNodes } from "../../support/harness/real-nodes.ts";

// The same manifests and the same calls of kubectl, on a plain cluster with a real node and through Legation: what a person
// sees on the terminal is the same, or it is a difference that the documentation names.

const DOCUMENT = new URL("../../../docs/conformance.md", import.meta.url);

test("every difference that stays has its reason in the documentation, and no other is there", () => {
  const headings = [...readFileSync(DOCUMENT, "utf8").matchAll(/^### `(.+)`$/gm)].map(([, id]) => id);
  expect(headings).toEqual(KNOWN_DIFFERENCES.map(({ id }) => id));
});

onRealNodes((realNodes) => {
  const met = new Set<string>();

  test.concurrent.for(SCENARIOS)("$name looks the same", { timeout: 600_000 }, async (scenario, { onTestFinished }) => {
    // Containers and probes of a scenario that has ended would take processor time from the others.
    const { plain, delegating } = await realNodes().places({ onFinished: onTestFinished });
    const [expected, seen] = await Promise.all([
      transcribe(scenario, plain, "plain"),
      transcribe(scenario, delegating, "legation"),
    ]);
    const { unexplained, known } = compare(expected, seen, KNOWN_DIFFERENCES);
    for (const id of known) met.add(id);
    expect(unexplained).toEqual([]);
  });

  // After all others; one that is not met any more has been mended.
  test("every known difference is met", () => {
    expect([...met].sort()).toEqual(KNOWN_DIFFERENCES.map(({ id }) => id).sort());
  });
});
