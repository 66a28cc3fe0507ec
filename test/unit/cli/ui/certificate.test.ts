import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import type { Certificate } from "../../../../src/certificates/issue.ts";
import { nextCertificate, servingCertificate } from "../../../../src/cli/ui/certificate.ts";

const HOSTS = ["legation.example.org"];
const DAY_MS = 86_400_000;
const now = Date.now();
const issued = (): Promise<Certificate> => servingCertificate(undefined, HOSTS, now);

/** Files of a serving certificate, and how to replace them. */
function certificateFiles() {
  const folder = mkdtempSync(join(tmpdir(), "legation-page-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const files = { cert: join(folder, "tls.crt"), key: join(folder, "tls.key") };
  const write = ({ cert, key }: Certificate): void => {
    writeFileSync(files.cert, cert);
    writeFileSync(files.key, key);
  };
  return { files, write };
}

test("refuses files of which one was replaced and the other not yet, and serves both once they are a pair", async () => {
  const [old, renewed] = [await issued(), await issued()];
  const { files, write } = certificateFiles();
  write({ cert: renewed.cert, key: old.key });
  await expect(nextCertificate(old, files, { hosts: HOSTS, now })).rejects.toThrow(/--tls-cert-file.*mismatch/);
  write(renewed);
  expect(await nextCertificate(old, files, { hosts: HOSTS, now })).toEqual(renewed);
});

test("keeps what it serves while the files stay the same", async () => {
  const served = await issued();
  const { files, write } = certificateFiles();
  write(served);
  expect(await nextCertificate(served, files, { hosts: HOSTS, now })).toBeUndefined();
});

test("replaces a certificate of its own before it expires", async () => {
  const served = await issued();
  const next = (days: number) => nextCertificate(served, undefined, { hosts: HOSTS, now: now + days * DAY_MS });
  expect(await next(200)).toBeUndefined();
  expect((await next(300))?.cert).toContain("BEGIN CERTIFICATE");
});
