import { expect, test } from "vitest";
import { keysDiffer, readRecord, writeRecord } from "../../../src/pods/forward-record.ts";

const record = {
  labels: ["team"],
  annotations: ["note"],
  gates: ["g"],
  conditions: ["c"],
  spec: { "image/main": "x" },
};

test("a short record names its keys, and is read as it was written", () => {
  expect(readRecord(writeRecord(record))).toEqual(record);
});

test("a record of more than 2 KiB keeps a fingerprint of the keys, and still tells whether they differ", () => {
  const labels = Array.from({ length: 300 }, (_, index) => `label-${index}`);
  const text = writeRecord({ ...record, labels });
  expect(text.length).toBeLessThan(2048);
  const read = readRecord(text);
  expect(keysDiffer(read, { labels, annotations: ["note"] })).toBe(false);
  expect(keysDiffer(read, { labels: labels.slice(1), annotations: ["note"] })).toBe(true);
  expect(keysDiffer(record, { labels: [], annotations: [] })).toBeUndefined();
});

test.each([
  ["no text", undefined],
  ["text that is no JSON", "{"],
  ["null", "null"],
  ["a number", "7"],
])("%s is an empty record, so that nothing is removed by mistake", (_, text) => {
  expect(readRecord(text)).toEqual({ labels: [], annotations: [], conditions: [] });
});

test("parts of a wrong type are left out, one by one", () => {
  const text = JSON.stringify({
    labels: ["a", 7],
    annotations: "all",
    gates: [null, "g"],
    spec: { image: 1, "image/main": "x" },
  });
  expect(readRecord(text)).toEqual({ labels: ["a"], annotations: [], gates: ["g"], spec: { "image/main": "x" } });
});

test("a record of version 0.1 loses annotations that admission in the member wrote", () => {
  const text = JSON.stringify({ labels: [], annotations: ["legation.dev/owner", "note"] });
  expect(readRecord(text).annotations).toEqual(["note"]);
});
