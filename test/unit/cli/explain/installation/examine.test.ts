import { expect, test } from "vitest";
import { runProgram } from "../../../../../src/cli/program.ts";
import { EXIT_CODES } from "../../../../../src/cli/shared/failure.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { answering, connected, refusing } from "./given.ts";

test("finds a host that does not answer, and nothing else", async () => {
  const session = connected(fakeClient({ raw: refusing("NotSent", "connection refused") }));
  expect(await runProgram(["doctor", "-o", "json"], session, "1")).toBe(EXIT_CODES.failure);
  expect(JSON.parse(session.out.join(""))).toMatchObject({
    healthy: false,
    counts: { FAIL: 1 },
    groups: [{ name: "Host", findings: [{ what: "the host does not answer: connection refused" }] }],
  });
  expect(session.err.join("")).toContain("doctor: found 1 failure");
});

test("reports what it found before a list that does not come", async () => {
  const list: ReturnType<typeof fakeClient>["list"] = (_resource, { signal: of } = {}) =>
    new Promise((_, reject) => {
      of?.addEventListener("abort", () => refusing("Aborted", "gave up")().catch(reject));
    });
  const session = connected(fakeClient({ ...answering, list }));
  expect(await runProgram(["doctor", "--timeout=50ms", "--members=west"], session, "1")).toBe(EXIT_CODES.failure);
  expect(session.out.join("")).toContain("OK    Kubernetes v1.36.3");
  expect(session.out.join("")).toContain("FAIL  Clusters, nodes and namespaces: no answer within 0.05 s");
});

test.each([[[]], [["--members=west"]]])("finds a host without Legation, with flags %j", async (flags) => {
  const session = connected(fakeClient({ ...answering, list: refusing("NotFound", "not found") }));
  expect(await runProgram(["doctor", ...flags], session, "1")).toBe(EXIT_CODES.failure);
  expect(session.out.join("")).toMatch(/FAIL .* Legation is not installed there/);
  expect(session.out.join("")).toContain("Fix: run `legation install` first");
});
