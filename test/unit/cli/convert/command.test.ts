import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { recordedSession } from "../session.ts";

const POD =
  "{apiVersion: v1, kind: Pod, metadata: {name: a, namespace: shop, annotations: {multicluster.admiralty.io/elect: '', multicluster.admiralty.io/global: 'true'}}, spec: {containers: [{name: main, image: busybox}]}}";

async function run(
  ...args: readonly string[]
): Promise<{ readonly code: number; readonly out: string; readonly err: string }> {
  const session = recordedSession({ stdin: Readable.from([POD]) });
  const code = await runProgram(["convert", ...args], session, "1.0.0");
  return { code, out: session.out.join(""), err: session.err.join("") };
}

test("convert prints manifests, and what has no equal on standard error", async () => {
  const { code, out, err } = await run("-f", "-");
  expect(code).toBe(0);
  expect(out).toContain('legation.dev/delegate: "true"');
  expect(err).toBe(
    [
      "1 field without an equal:",
      "- Pod shop/a: metadata.annotations[multicluster.admiralty.io/global]: is not known to Legation; remove it, and write legation.dev/clusters or legation.dev/cluster-selector to choose clusters",
      "  instead: it is left out of the output",
      "to do besides `kubectl apply`:",
      "- Namespace shop: kubectl label namespace shop legation.dev/delegation=annotated",
      "",
    ].join("\n"),
  );
});

test("convert prints a list as JSON", async () => {
  const { out } = await run("-f", "-", "-o", "json");
  expect(JSON.parse(out)).toMatchObject({ kind: "List", items: [{ kind: "Pod" }] });
});

test("convert --strict ends with 5 when a field has no equal", async () => {
  const { code, out } = await run("-f", "-", "--strict");
  expect(code).toBe(5);
  expect(out).toContain("kind: Pod");
});

test("convert without a file is a wrong command line", async () => {
  const { code, err } = await run();
  expect(code).toBe(2);
  expect(err).toContain("--filename: is required");
});
