import { expect, test } from "vitest";
import { createLogger } from "../../../src/telemetry/logger.ts";

function lines(): { written: string[]; destination: { write: (line: string) => void } } {
  const written: string[] = [];
  return { written, destination: { write: (line) => written.push(line) } };
}

test("writes a line as one JSON object with a time, and keeps keys of objects readable", () => {
  const { written, destination } = lines();
  createLogger({ destination }).child({ key: "default/web", reconcile: 7 }).info({ cluster: "west" }, "placed");
  expect(JSON.parse(written.join(""))).toEqual({
    level: 30,
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT/),
    key: "default/web",
    reconcile: 7,
    cluster: "west",
    msg: "placed",
  });
});

test.each([
  ["a token", { token: "s3cret" }],
  ["a header", { request: { headers: { authorization: "Bearer s3cret" } } }],
  ["a Secret", { object: { data: { password: "s3cret" }, stringData: "s3cret" } }],
  ["a kubeconfig", { member: { kubeconfig: "s3cret" } }],
])("keeps %s out of the log", (_case, fields) => {
  const { written, destination } = lines();
  createLogger({ destination }).info(fields, "done");
  expect(written.join("")).toContain("[redacted]");
  expect(written.join("")).not.toContain("s3cret");
});

test("leaves out lines below the level", () => {
  const { written, destination } = lines();
  const log = createLogger({ destination, level: "warn" });
  log.info("small");
  log.warn("large");
  expect(written).toHaveLength(1);
});
