import { X509Certificate } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { Certificate } from "../../../src/certificates/issue.ts";
import { issueAuthority, issueServing } from "../../../src/certificates/issue.ts";
import { type KubeletCertificate, kubeletSource } from "../../../src/kubelet/serving-certificate.ts";
import { CertificateKeeper } from "../../../src/serving/certificate-keeper.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { RecordedHost } from "../serving/recorded-host.ts";

const DAY_MS = 24 * 60 * 60_000;
const log = createLogger({ level: "silent" });

function follow(
  certificate: KubeletCertificate,
  clock: FakeClock,
): { keeper: CertificateKeeper; served: Certificate[] } {
  const source = kubeletSource(certificate, { host: new RecordedHost().client, clock, log });
  const keeper = new CertificateKeeper({ source, clock, log });
  onTestFinished(() => keeper.close());
  return { keeper, served: [] };
}

async function issue(host: string, now: number): Promise<Certificate> {
  const options = { now, lifetimeMs: DAY_MS };
  return issueServing(await issueAuthority("test", options), [host], options);
}

describe("the serving certificate of virtual nodes", () => {
  test("is for the published address, and is renewed in time", async () => {
    const clock = new FakeClock(Date.now());
    const { keeper, served } = follow({ kind: "own", hosts: ["192.0.2.7"] }, clock);
    const first = await keeper.load();
    expect(new X509Certificate(first.cert).checkIP("192.0.2.7")).toBe("192.0.2.7");
    void keeper.follow((certificate) => served.push(certificate));
    await clock.advance(60_000);
    expect(served).toEqual([]);
    await expect.poll(() => clock.pending).toBe(1);
    clock.jump(250 * DAY_MS);
    await clock.advance(60_000);
    await expect.poll(() => served.length, { timeout: 10_000 }).toBe(1);
    const [second] = served;
    expect(new X509Certificate(second?.cert ?? "").validToDate.getTime()).toBeGreaterThan(
      new X509Certificate(first.cert).validToDate.getTime(),
    );
  });

  test.each([
    ["kept, as it is valid, when the clock was ten days", 10, 0],
    ["replaced within a minute when the clock was forty days", 40, 1],
  ])("is %s ahead and is right again", async (_, days, times) => {
    const clock = new FakeClock(Date.now());
    clock.jump(days * DAY_MS);
    const { keeper, served } = follow({ kind: "own", hosts: ["192.0.2.7"] }, clock);
    const first = await keeper.load();
    void keeper.follow((certificate) => served.push(certificate));
    clock.jump(-days * DAY_MS);
    await clock.advance(60_000);
    await expect.poll(() => clock.pending).toBe(1);
    expect(served).toHaveLength(times);
    const { validFromDate } = new X509Certificate((served[0] ?? first).cert);
    expect(validFromDate.getTime()).toBeLessThan(clock.wall());
  });

  test("is read again from changed files, and kept while these do not match", async () => {
    const folder = mkdtempSync(join(tmpdir(), "legation-serving-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
    const clock = new FakeClock(Date.now());
    const [first, second] = [await issue("one.example", clock.now()), await issue("two.example", clock.now())];
    writeFileSync(certFile, first.cert);
    writeFileSync(keyFile, first.key);
    const { keeper, served } = follow({ kind: "files", certFile, keyFile }, clock);
    expect(await keeper.load()).toEqual(first);
    void keeper.follow((certificate) => served.push(certificate));
    writeFileSync(certFile, second.cert);
    await clock.advance(10_000);
    await expect.poll(() => clock.pending).toBe(1);
    expect(served).toEqual([]);
    writeFileSync(keyFile, second.key);
    await clock.advance(10_000);
    await expect.poll(() => served).toEqual([second]);
  });

  test("is required before anything is served", async () => {
    const source = { kind: "files", certFile: "/nowhere/tls.crt", keyFile: "/nowhere/tls.key" } as const;
    await expect(follow(source, new FakeClock()).keeper.load()).rejects.toThrow("/nowhere/tls.crt");
  });
});
