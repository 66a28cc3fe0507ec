import { beforeAll, expect, test } from "vitest";
import { addToBundle, certificatesOf } from "../../../src/certificates/bundle.ts";
import { issueAuthority } from "../../../src/certificates/issue.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const HOUR_MS = 3_600_000;

let pems: readonly string[];
const at = (index: number): string => pems[index] ?? "";

beforeAll(async () => {
  const authorities = Array.from({ length: 13 }, (_, index) =>
    issueAuthority(`ca-${index}`, { now: NOW, lifetimeMs: HOUR_MS }),
  );
  pems = (await Promise.all(authorities)).map(({ cert }) => cert);
});

test("finds certificates between comments, and without a final newline", () => {
  expect(certificatesOf(`# ours\r\n${at(0)}\n\n# theirs\n${at(1).trimEnd()}`)).toEqual([at(0), `${at(1).trimEnd()}\n`]);
  expect(certificatesOf("-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n")).toEqual([]);
});

test("converges on one bundle after one write of each replica with another CA", () => {
  const first = addToBundle("", at(0), NOW);
  const both = addToBundle(first, at(1), NOW);
  expect(both).toBe(at(1) + at(0));
  expect(addToBundle(both, at(0), NOW)).toBe(both);
  expect(addToBundle(`${both}\n`, at(1), NOW)).toBe(both);
});

test("drops expired certificates, and all but the newest unused ones", () => {
  expect(addToBundle(at(1) + at(0), at(1), NOW + 2 * HOUR_MS)).toBe(at(1));
  const bundle = pems.slice(1).reduce((trusted, pem) => addToBundle(trusted, pem, NOW), at(0));
  expect(certificatesOf(bundle)).toEqual(pems.slice(2).toReversed());
});
