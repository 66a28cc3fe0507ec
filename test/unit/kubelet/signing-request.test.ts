import { X509Certificate } from "node:crypto";
import { AsnConvert } from "@peculiar/asn1-schema";
import { beforeEach, describe, expect, onTestFinished, test } from "vitest";
import type { CertificateSigningRequest, Stored } from "../../../src/api/kubernetes.ts";
import { type Authority, issueAuthority, issueClient, readRequest } from "../../../src/certificates/issue.ts";
import { distinguishedName, subjectAltName } from "../../../src/certificates/x509.ts";
import { certificateSigningRequests } from "../../../src/kube/resources.ts";
import { kubeletSource } from "../../../src/kubelet/serving-certificate.ts";
import { SigningRequest } from "../../../src/kubelet/signing-request.ts";
import { CertificateKeeper } from "../../../src/serving/certificate-keeper.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { RecordedHost } from "../serving/recorded-host.ts";

const SIGNER = "kubernetes.io/kubelet-serving";
const HOUR_MS = 60 * 60_000;
const log = createLogger({ level: "silent" });

/** A host on which this account may not approve by default. */
class Host extends RecordedHost {
  mayApprove = false;

  constructor() {
    super();
    this.client.patch = async (resource, { name }) => {
      if (!this.mayApprove) throw kubeError("Forbidden");
      this.writes.push(`approve ${name}`);
      const approved = this.peek(resource, { name });
      if (approved === undefined) throw new Error("approved what is not there");
      return approved;
    };
  }
}

let host: Host;
let clock: FakeClock;
let authority: Authority;
let request: SigningRequest;
beforeEach(async () => {
  host = new Host();
  clock = new FakeClock(Date.now());
  authority ??= await issueAuthority("signer", { now: clock.now(), lifetimeMs: 365 * 24 * HOUR_MS });
  request = new SigningRequest({ host: host.client, signer: SIGNER, hosts: ["192.0.2.7", "node.example"], clock, log });
});

function keeperOf(): CertificateKeeper {
  const certificate = { kind: "signer", signer: SIGNER, hosts: ["192.0.2.7"] } as const;
  return new CertificateKeeper({ source: kubeletSource(certificate, { host: host.client, clock, log }), clock, log });
}

/** Returns the names of the requests. */
function asked(): string[] {
  return host.writes.flatMap((write) => /^create certificatesigningrequests\/(.*)/.exec(write)?.[1] ?? []);
}

function found(name: string | undefined): Stored<CertificateSigningRequest> {
  const csr = host.peek(certificateSigningRequests, { name: name ?? "" });
  if (csr === undefined) throw new Error(`no CertificateSigningRequest ${name}`);
  return csr;
}

/** Returns a request (PEM). */
function requestOf(csr: CertificateSigningRequest): string {
  return Buffer.from(csr.spec.request, "base64").toString();
}

function answer(name: string | undefined, status: CertificateSigningRequest["status"]): void {
  host.put(certificateSigningRequests, { ...found(name), ...{ status } });
}

/** Signs a request for this lifetime, by a clock that may be ahead. */
function sign(name: string | undefined, lifetimeMs = 24 * HOUR_MS, aheadMs = 0): void {
  const { publicKey = "" } = readRequest(requestOf(found(name))) ?? {};
  // Valid from now on: a short life is backdated by as much.
  const options = { now: clock.now() + aheadMs + lifetimeMs / 2, lifetimeMs: lifetimeMs / 2 };
  const cert = issueClient(authority, publicKey, { name: "signed", uid: "1" }, options);
  answer(name, { certificate: Buffer.from(cert).toString("base64") });
}

describe("a certificate from a signer of the host", () => {
  test("is requested once, as kubelets request theirs, and fetched when it is signed", async () => {
    expect(await request.next()).toBeUndefined();
    expect(await request.next()).toBeUndefined();
    const [name, ...more] = asked();
    expect(more).toEqual([]);
    const csr = found(name);
    expect(csr.spec).toMatchObject({
      signerName: SIGNER,
      usages: ["digital signature", "key encipherment", "server auth"],
    });
    expect(readRequest(requestOf(csr))).toBeDefined();
    const content = Buffer.from(requestOf(csr).replaceAll(/-----.*-----/g, ""), "base64");
    const subject = distinguishedName({ organization: "system:nodes", commonName: "system:node:legation" });
    expect(content.includes(Buffer.from(AsnConvert.serialize(subject)))).toBe(true);
    expect(content.includes(Buffer.from(AsnConvert.serialize(subjectAltName(["192.0.2.7", "node.example"]))))).toBe(
      true,
    );
    sign(name);
    const certificate = await request.next();
    expect(certificate?.cert).toContain("BEGIN CERTIFICATE");
    expect(certificate?.key).toContain("PRIVATE KEY");
  });

  test("is approved by the controller once it gets the right, without another request", async () => {
    await request.next();
    await request.next();
    host.mayApprove = true;
    await clock.advance(60_000);
    await request.next();
    expect(host.writes).toEqual([`create certificatesigningrequests/${asked()[0]}`, `approve ${asked()[0]}`]);
  });

  test("is approved by the controller where it may", async () => {
    host.mayApprove = true;
    await request.next();
    expect(host.writes).toEqual([`create certificatesigningrequests/${asked()[0]}`, `approve ${asked()[0]}`]);
  });

  test("is found again when the response to its creation was lost", async () => {
    let lost = true;
    const { create } = host.client;
    host.client.create = async (...args) => {
      const made = await create(...args);
      if (!lost) return made;
      lost = false;
      throw kubeError("AnswerLost", "AnswerLost", { cluster: "host", resource: "csr" });
    };
    await expect(request.next()).rejects.toThrow();
    expect(await request.next()).toBeUndefined();
    const [name, ...more] = asked();
    expect(more).toEqual([]);
    sign(name);
    expect(await request.next()).toBeDefined();
  });

  test("is requested again, for the same key, when Kubernetes has removed an unanswered request", async () => {
    await request.next();
    const [name = ""] = asked();
    host.drop(certificateSigningRequests, { name });
    await request.next();
    expect(asked()).toEqual([name, name]);
  });

  test.each(["Denied", "Failed"])("is requested again after an hour, with another key, if it was %s", async (type) => {
    await request.next();
    const [name] = asked();
    answer(name, { conditions: [{ type, status: "True", reason: "No", message: "not here" }] });
    expect(await request.next()).toBeUndefined();
    await clock.advance(HOUR_MS - 1);
    await request.next();
    expect(asked()).toHaveLength(1);
    await clock.advance(1);
    await request.next();
    expect(new Set(asked()).size).toBe(2);
  });

  test("is not served if it is for another key", async () => {
    await request.next();
    const [name] = asked();
    const certificate = Buffer.from(authority.cert).toString("base64");
    answer(name, { certificate });
    await expect(request.next()).rejects.toThrow(/key values mismatch/);
  });

  test("replaces the controller's own certificate once it is signed, and is renewed in time", async () => {
    const keeper = keeperOf();
    const served: string[] = [];
    const own = await keeper.load();
    void keeper.follow(({ cert }) => served.push(cert));
    expect(own.cert).toContain("BEGIN CERTIFICATE");
    sign(asked()[0]);
    await clock.advance(2_000);
    await expect.poll(() => served.length).toBe(1);
    expect(served[0]).not.toBe(own.cert);
    await expect.poll(() => clock.pending).toBe(1);
    await clock.advance(17 * HOUR_MS);
    await expect.poll(() => asked().length, { timeout: 10_000 }).toBe(2);
    sign(asked()[1]);
    await expect.poll(() => clock.pending).toBe(1);
    await clock.advance(2_000);
    await expect.poll(() => served.length).toBe(2);
    keeper.close();
  });

  test("is kept while the clock is behind its validity, as the next one would be, too", async () => {
    const keeper = keeperOf();
    const served: string[] = [];
    await keeper.load();
    void keeper.follow(({ cert }) => served.push(cert));
    sign(asked()[0]);
    clock.jump(-48 * HOUR_MS);
    await clock.advance(2_000);
    await expect.poll(() => served.length).toBe(1);
    await expect.poll(() => clock.pending).toBe(1);
    await clock.advance(2_000);
    await expect.poll(() => clock.pending, { timeout: 10_000 }).toBe(1);
    expect(asked()).toHaveLength(1);
    keeper.close();
  });

  test("is asked for again while it is not valid yet, and replaced once the signer's clock is right", async () => {
    const keeper = keeperOf();
    onTestFinished(() => keeper.close());
    const served: string[] = [];
    await keeper.load();
    void keeper.follow(({ cert }) => served.push(cert));
    const ages = (): number[] =>
      served.map((cert) => (new X509Certificate(cert).validFromDate.getTime() - clock.now()) / HOUR_MS);
    sign(asked()[0], 48 * HOUR_MS, 25 * HOUR_MS);
    await clock.advance(2_000);
    await expect.poll(() => served.length).toBe(1);
    expect(ages()[0]).toBeCloseTo(25, 1);
    const untilAsked = async (times: number): Promise<void> => {
      await expect
        .poll(async () => {
          await clock.fireNext();
          return asked().length;
        })
        .toBe(times);
    };
    await untilAsked(2);
    expect(clock.now()).toBeLessThan(Date.now() + HOUR_MS / 4);
    // Still ahead: the one before stays.
    sign(asked()[1], 48 * HOUR_MS, 25 * HOUR_MS);
    await untilAsked(3);
    expect(served).toHaveLength(1);
    sign(asked()[2], 48 * HOUR_MS);
    await clock.fireNext();
    await expect.poll(() => served.length).toBe(2);
    expect(ages()[1]).toBeLessThan(0.1);
  });

  test("leaves the controller's own certificate in use if it cannot be requested", async () => {
    host.failure = "Forbidden";
    const keeper = keeperOf();
    expect((await keeper.load()).cert).toContain("BEGIN CERTIFICATE");
  });
});
