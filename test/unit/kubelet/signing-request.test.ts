import forge from "node-forge";
import { beforeEach, describe, expect, test } from "vitest";
import type { CertificateSigningRequest, KubeObject, ObjectRef, Stored } from "../../../src/api/kubernetes.ts";
import { type Authority, issueAuthority } from "../../../src/certificates/issue.ts";
import { KubeError } from "../../../src/kube/errors.ts";
import { certificateSigningRequests, isStored, type Resource } from "../../../src/kube/resources.ts";
import { ServingCertificate } from "../../../src/kubelet/serving-certificate.ts";
import { SigningRequest } from "../../../src/kubelet/signing-request.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { FakeClock } from "../../support/clock/fake-clock.ts";
import { MemoryClient } from "../webhook/memory-client.ts";

const SIGNER = "kubernetes.io/kubelet-serving";
const HOUR_MS = 60 * 60_000;
const log = createLogger({ level: "silent" });

/** A host on which this account may not approve, unless it is said. */
class Host extends MemoryClient {
  mayApprove = false;

  override async patch<T extends KubeObject>(resource: Resource<T>, { name }: ObjectRef): Promise<Stored<T>> {
    const forbidden = { code: "Forbidden", cluster: "host", verb: "patch", resource: "approval" } as const;
    if (!this.mayApprove) throw new KubeError("Forbidden", forbidden);
    this.writes.push(`approve ${name}`);
    const approved = this.peek(resource, { name });
    if (!isStored<T>(approved)) throw new Error("approved what is not there");
    return approved;
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
  request = new SigningRequest({ host, signer: SIGNER, hosts: ["192.0.2.7", "node.example"], clock, log });
});

/** The names of what was asked for. */
function asked(): string[] {
  return host.writes.flatMap((write) => /^create certificatesigningrequests\/(.*)/.exec(write)?.[1] ?? []);
}

function found(name: string | undefined): Stored<CertificateSigningRequest> {
  const csr = host.peek(certificateSigningRequests, { name: name ?? "" });
  if (csr === undefined) throw new Error(`no CertificateSigningRequest ${name}`);
  return csr;
}

function parsed(csr: CertificateSigningRequest): forge.pki.CertificateSigningRequest {
  return forge.pki.certificationRequestFromPem(Buffer.from(csr.spec.request, "base64").toString());
}

function answer(name: string | undefined, status: CertificateSigningRequest["status"]): void {
  host.put(certificateSigningRequests, { ...found(name), ...{ status } });
}

/** Signs as a signer does, for so long. */
function sign(name: string | undefined, lifetimeMs = 24 * HOUR_MS): void {
  const { publicKey } = parsed(found(name));
  const cert = forge.pki.createCertificate();
  if (publicKey === null) throw new Error("a request without a key");
  cert.publicKey = publicKey;
  cert.serialNumber = "01";
  cert.validity.notBefore = new Date(clock.now());
  cert.validity.notAfter = new Date(clock.now() + lifetimeMs);
  cert.sign(forge.pki.privateKeyFromPem(authority.key), forge.md.sha256.create());
  const certificate = Buffer.from(forge.pki.certificateToPem(cert)).toString("base64");
  answer(name, { certificate });
}

describe("a certificate that a signer of the host signs", () => {
  test("is asked for as kubelet asks for its own, once, and picked up when it is there", async () => {
    expect(await request.next()).toBeUndefined();
    expect(await request.next()).toBeUndefined();
    const [name, ...more] = asked();
    expect(more).toEqual([]);
    const csr = found(name);
    expect(csr.spec).toMatchObject({
      signerName: SIGNER,
      usages: ["digital signature", "key encipherment", "server auth"],
    });
    const content = parsed(csr);
    expect(content.verify()).toBe(true);
    expect(content.subject.getField("CN").value).toBe("system:node:legation");
    expect(content.subject.getField("O").value).toBe("system:nodes");
    const [names] = content.getAttribute({ name: "extensionRequest" })?.extensions ?? [];
    expect(names.altNames).toMatchObject([{ ip: "192.0.2.7" }, { value: "node.example" }]);
    sign(name);
    const certificate = await request.next();
    expect(certificate?.cert).toContain("BEGIN CERTIFICATE");
    expect(certificate?.key).toContain("PRIVATE KEY");
  });

  test("is approved by the controller when it is given the right after it has asked, without being asked for again", async () => {
    await request.next();
    await request.next();
    host.mayApprove = true;
    await clock.advance(60_000);
    await request.next();
    expect(host.writes).toEqual([`create certificatesigningrequests/${asked()[0]}`, `approve ${asked()[0]}`]);
  });

  test("is approved by the controller itself where it may", async () => {
    host.mayApprove = true;
    await request.next();
    expect(host.writes).toEqual([`create certificatesigningrequests/${asked()[0]}`, `approve ${asked()[0]}`]);
  });

  test("is found again when the answer to its creation was lost", async () => {
    let lost = true;
    const { create } = host;
    Object.assign(host, {
      create: async (...args: Parameters<typeof create>) => {
        const made = await create.apply(host, args);
        if (!lost) return made;
        lost = false;
        throw new KubeError("AnswerLost", { code: "AnswerLost", cluster: "host", verb: "create", resource: "csr" });
      },
    });
    await expect(request.next()).rejects.toThrow();
    expect(await request.next()).toBeUndefined();
    const [name, ...more] = asked();
    expect(more).toEqual([]);
    sign(name);
    expect(await request.next()).toBeDefined();
  });

  test("is asked for again, for the same key, when Kubernetes has removed what nobody answered", async () => {
    await request.next();
    const [name = ""] = asked();
    host.drop(certificateSigningRequests, { name });
    await request.next();
    expect(asked()).toEqual([name, name]);
  });

  test.each(["Denied", "Failed"])("that is %s is asked for anew in an hour, with another key", async (type) => {
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

  test("that is for another key is not served", async () => {
    await request.next();
    const [name] = asked();
    const certificate = Buffer.from(authority.cert).toString("base64");
    answer(name, { certificate });
    await expect(request.next()).rejects.toThrow(/key values mismatch/);
  });

  test("is served as soon as it is signed, in the place of one of the controller's own, and renewed in time", async () => {
    const source = { kind: "signer", signer: SIGNER, hosts: ["192.0.2.7"] } as const;
    const keeper = new ServingCertificate({ source, host, clock, log });
    const served: string[] = [];
    const own = await keeper.load();
    keeper.follow(({ cert }) => served.push(cert));
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
    keeper.stop();
  });

  test("is kept when it is valid from later on by a clock that is behind: the next one would be, too", async () => {
    const source = { kind: "signer", signer: SIGNER, hosts: ["192.0.2.7"] } as const;
    const keeper = new ServingCertificate({ source, host, clock, log });
    const served: string[] = [];
    await keeper.load();
    keeper.follow(({ cert }) => served.push(cert));
    sign(asked()[0]);
    clock.jump(-48 * HOUR_MS);
    await clock.advance(2_000);
    await expect.poll(() => served.length).toBe(1);
    await expect.poll(() => clock.pending).toBe(1);
    await clock.advance(2_000);
    await expect.poll(() => clock.pending, { timeout: 10_000 }).toBe(1);
    expect(asked()).toHaveLength(1);
    keeper.stop();
  });

  test("that cannot be asked for leaves one of the controller's own", async () => {
    host.failure = "Forbidden";
    const source = { kind: "signer", signer: SIGNER, hosts: ["192.0.2.7"] } as const;
    const keeper = new ServingCertificate({ source, host, clock, log });
    expect((await keeper.load()).cert).toContain("BEGIN CERTIFICATE");
  });
});
