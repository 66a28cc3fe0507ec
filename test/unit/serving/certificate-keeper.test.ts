import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import type { KubeObject, Secret } from "../../../src/api/kubernetes.ts";
import { certificatesOf } from "../../../src/certificates/bundle.ts";
import { type Certificate, issueAuthority, issueServing } from "../../../src/certificates/issue.ts";
import { expiresAt, hostsOf, renewalReason } from "../../../src/certificates/validity.ts";
import { type Resource, secrets } from "../../../src/kube/resources.ts";
import { CertificateKeeper } from "../../../src/serving/certificate-keeper.ts";
import { type TlsSource, verifiedSource } from "../../../src/serving/certificate-source.ts";
import { createLogger } from "../../../src/telemetry/logger.ts";
import { ensureCaBundle } from "../../../webhook/ca-bundle.ts";
import { WEBHOOK_CERTIFICATE_SECRET } from "../../../webhook/certificate.ts";
import { FakeClock, settle } from "../../support/clock/fake-clock.ts";
import { bundlesOf, RecordedHost } from "./recorded-host.ts";

const DAY_MS = 24 * 3_600_000;
const SECRET = { namespace: "legation-system", name: "legation-webhook-certificate" };
const OWN: TlsSource = { kind: "own", hosts: ["127.0.0.1"] };

const mutating: Resource<KubeObject> = {
  group: "admissionregistration.k8s.io",
  version: "v1",
  plural: "mutatingwebhookconfigurations",
  kind: "MutatingWebhookConfiguration",
  namespaced: false,
};
const service = { namespace: "legation-system", name: "legation-webhook" };

function install(client: RecordedHost, clientConfig: object = { service }): void {
  const webhooks = [
    { name: "a", clientConfig, timeoutSeconds: 5 },
    { name: "b", clientConfig },
  ];
  client.put(mutating, Object.assign({ metadata: { name: "legation" } }, { webhooks }));
}

function bundles(client: RecordedHost): (string | undefined)[] {
  return bundlesOf(client.peek(mutating, { name: "legation" }));
}

function hasSecret(client: RecordedHost): boolean {
  return client.peek(secrets, SECRET) !== undefined;
}

interface Replica {
  readonly keeper: CertificateKeeper;
  readonly serving: () => Certificate;
}

async function replica({ client }: RecordedHost, clock: FakeClock, source: TlsSource = OWN): Promise<Replica> {
  const keeper = new CertificateKeeper({
    source: verifiedSource(source, { secret: WEBHOOK_CERTIFICATE_SECRET, client, clock }),
    publish: (trust, signal) => ensureCaBundle(client, trust, signal),
    clock,
    log: createLogger({ level: "silent" }),
  });
  onTestFinished(() => keeper.close());
  let serving = await keeper.load();
  await keeper.follow((certificate) => {
    serving = certificate;
  });
  return { keeper, serving: () => serving };
}

/** RSA keys are made on other threads, which the fake clock does not wait for. */
async function advance(clock: FakeClock, ms: number, until: () => boolean): Promise<void> {
  await clock.advance(ms);
  for (let turn = 0; turn < 2000 && !until(); turn += 1) {
    await settle();
    await clock.advance(100);
    await new Promise((resolve) => setTimeout(resolve, 2));
  }
  expect(until()).toBe(true);
}

function trusts(bundle: string | undefined, { cert }: Certificate): boolean {
  const authorities = bundle?.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\s*/g) ?? [];
  const now = (expiresAt(cert) ?? 0) - 89 * DAY_MS;
  return authorities.some((authority) => renewalReason(cert, { now, authority }) === undefined);
}

describe("a certificate of Legation's own", () => {
  test("is issued once, stored in a Secret, and trusted by every configuration entry", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const { keeper, serving } = await replica(client, clock);
    expect(hasSecret(client)).toBe(true);
    expect(bundles(client).every((bundle) => trusts(bundle, serving()))).toBe(true);
    expect(keeper.trusted).toBe(true);

    client.writes.length = 0;
    const second = await replica(client, clock);
    await clock.advance(60_000);
    expect(second.serving().cert).toBe(serving().cert);
    expect(client.writes).toEqual([]);
  });

  test("covers all names that the configurations call", async () => {
    const client = new RecordedHost();
    install(client, { url: "https://admission.example:9443/mutate/all" });
    const { serving } = await replica(client, new FakeClock());
    expect(hostsOf(serving().cert)).toEqual(["127.0.0.1", "admission.example"]);
  });

  test("is renewed after two thirds of its life by the same authority", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const { serving } = await replica(client, clock);
    const before = serving();
    const [bundle] = bundles(client);
    clock.jump(61 * DAY_MS);
    const later = await replica(client, new FakeClock(clock.wall()));
    expect(later.serving().cert).not.toBe(before.cert);
    expect(bundles(client)[0]).toBe(bundle);
    // The replica that renewed nothing finds it in the Secret.
    await advance(clock, 10_000, () => serving().cert === later.serving().cert);
  });

  test("is served under a new authority only after a while of trust", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const { serving } = await replica(client, clock);
    const before = serving();
    clock.jump(7 * 365 * DAY_MS);
    await replica(client, new FakeClock(clock.wall()));
    const [bundle] = bundles(client);
    expect(bundle?.match(/BEGIN/g)).toHaveLength(2);
    expect(trusts(bundle, before)).toBe(true);
    await clock.advance(10_000);
    expect(serving()).toBe(before);
    await advance(clock, 5_000, () => serving() !== before);
    expect(trusts(bundle, serving())).toBe(true);
  });

  test("is restored after its Secret was deleted", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const { serving } = await replica(client, clock);
    const before = serving();
    client.drop(secrets, SECRET);
    await clock.advance(10_000);
    expect(hasSecret(client)).toBe(true);
    expect(serving()).toBe(before);
  });

  test("is replaced with its authority, also in memory, if it is from a clock far ahead", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock(Date.now());
    clock.jump(33 * DAY_MS);
    install(client);
    const { serving } = await replica(client, clock);
    const early = serving();
    clock.jump(-33 * DAY_MS);
    client.drop(secrets, SECRET);
    await advance(clock, 15_000, () => serving().cert !== early.cert);
    const [bundle = ""] = bundles(client);
    const [own = "", earlier = ""] = certificatesOf(bundle);
    expect(bundle).toBe(own + earlier);
    expect(renewalReason(own, { now: clock.wall() })).toBeUndefined();
    expect(renewalReason(serving().cert, { now: clock.wall(), authority: own })).toBeUndefined();
    expect(renewalReason(earlier, { now: clock.wall() })).toBe("early");
  });

  test("gets a new authority if the key was removed, trusted before it is used", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const replicas = [await replica(client, clock), await replica(client, clock)];
    const before = replicas[0]?.serving().cert;
    const { data = {}, ...rest } = client.peek<Secret>(secrets, SECRET) ?? { metadata: {} };
    const { "ca.key": _, ...kept } = data;
    client.put(secrets, Object.assign(rest, { data: kept }));
    await advance(clock, 15_000, () => replicas.every(({ serving }) => serving().cert !== before));
    expect(new Set(replicas.map(({ serving }) => serving().cert)).size).toBe(1);
    const [bundle] = bundles(client);
    for (const { serving } of replicas) expect(trusts(bundle, serving())).toBe(true);
    expect(certificatesOf(bundle ?? "")).toHaveLength(2);
  });

  test("stays trusted, of another replica, if the Secret is deleted and a new replica starts", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const first = await replica(client, clock);
    const before = first.serving();
    client.drop(secrets, SECRET);
    const second = await replica(client, clock);
    expect(second.serving().cert).not.toBe(before.cert);
    for (const bundle of bundles(client)) {
      expect(trusts(bundle, before)).toBe(true);
      expect(trusts(bundle, second.serving())).toBe(true);
    }
    await advance(clock, 15_000, () => first.serving().cert === second.serving().cert);
  });

  test("stays trusted after renewal if a replica writes a stale bundle", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    await replica(client, clock);
    const read = client.peek(secrets, SECRET);
    const later = await replica(client, new FakeClock(clock.now() + 7 * 365 * DAY_MS));
    const [bundle] = bundles(client);
    const renewed = client.peek(secrets, SECRET);
    client.put(secrets, read ?? {});
    await replica(client, clock);
    client.put(secrets, renewed ?? {});
    expect(bundles(client)).toEqual([bundle, bundle]);
    expect(trusts(bundle, later.serving())).toBe(true);
  });

  test("is trusted a second after the configurations are created or re-created", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    const { keeper } = await replica(client, clock);
    expect(keeper.trusted).toBe(false);
    install(client, { url: "https://127.0.0.1:9443/" });
    await clock.advance(1_000);
    expect(keeper.trusted).toBe(true);
    install(client, { url: "https://127.0.0.1:9443/" });
    await clock.advance(10_000);
    expect(bundles(client)).toEqual([expect.any(String), expect.any(String)]);
  });

  test("is served while the API server does not answer", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const { keeper, serving } = await replica(client, clock);
    const before = serving();
    client.failure = "NotSent";
    await clock.advance(60_000);
    expect(serving()).toBe(before);
    expect(keeper.trusted).toBe(true);
    client.failure = undefined;
    install(client);
    await clock.advance(10_000);
    expect(bundles(client)).toEqual([expect.any(String), expect.any(String)]);
  });
});

describe("a certificate in files", () => {
  type Files = Extract<TlsSource, { kind: "files" }>;

  async function files(): Promise<{
    source: Files & { caFile: string };
    write: (serving: Certificate, ca: string) => Promise<void>;
  }> {
    const folder = await mkdtemp(join(tmpdir(), "legation-tls-"));
    onTestFinished(() => rm(folder, { recursive: true }));
    const certFile = join(folder, "tls.crt");
    const keyFile = join(folder, "tls.key");
    const caFile = join(folder, "ca.crt");
    const write = async ({ cert, key }: Certificate, ca: string): Promise<void> => {
      await Promise.all([writeFile(certFile, cert), writeFile(keyFile, key), writeFile(caFile, ca)]);
    };
    return { source: { kind: "files", certFile, keyFile, caFile }, write };
  }

  async function issue(): Promise<{ ca: string; serving: Certificate }> {
    const now = Date.now();
    const authority = await issueAuthority("files", { now, lifetimeMs: DAY_MS });
    return { ca: authority.cert, serving: await issueServing(authority, ["a"], { now, lifetimeMs: DAY_MS }) };
  }

  test("is read again after a change, and its bundle published", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock();
    install(client);
    const { source, write } = await files();
    const first = await issue();
    await write(first.serving, first.ca);
    const { serving } = await replica(client, clock, source);
    expect(serving()).toEqual(first.serving);
    expect(bundles(client)).toEqual([first.ca, first.ca]);
    expect(hasSecret(client)).toBe(false);

    const second = await issue();
    await write(second.serving, second.ca);
    await advance(clock, 15_000, () => serving().cert === second.serving.cert);
    expect(bundles(client)).toEqual([second.ca + first.ca, second.ca + first.ca]);
  });

  test("stays trusted beside another replica's", async () => {
    const client = new RecordedHost();
    const clock = new FakeClock(Date.now());
    install(client);
    const [mounted, late] = [await files(), await files()];
    const [before, after] = [await issue(), await issue()];
    await Promise.all([mounted, late].map(({ write }) => write(before.serving, before.ca)));
    const first = await replica(client, clock, mounted.source);
    const second = await replica(client, clock, late.source);

    await mounted.write(after.serving, after.ca);
    await advance(clock, 15_000, () => first.serving().cert === after.serving.cert);
    expect(second.serving().cert).toBe(before.serving.cert);
    client.writes.length = 0;
    await advance(clock, 60_000, () => true);
    expect(client.writes).toEqual([]);
    expect(bundles(client)).toEqual([after.ca + before.ca, after.ca + before.ca]);
  });

  test("is not lost if two writers are concurrent", async () => {
    const client = new RecordedHost();
    install(client);
    const [own, rival] = [await issue(), await issue()];
    const { source, write } = await files();
    await write(own.serving, own.ca);
    client.beforeWrite = () => {
      client.beforeWrite = () => {};
      install(client, { service, caBundle: Buffer.from(rival.ca).toString("base64") });
    };
    await replica(client, new FakeClock(Date.now()), source);
    expect(bundles(client)).toEqual([own.ca + rival.ca, own.ca + rival.ca]);
  });

  test("gets an empty line in the bundle of the second call", async () => {
    const client = new RecordedHost();
    const { source, write } = await files();
    const { serving, ca } = await issue();
    await write(serving, ca);
    const clientConfig = { service };
    const entries = { legation: "pods.legation.dev", "zz-legation": "pods-again.legation.dev" };
    for (const [name, webhook] of Object.entries(entries)) {
      client.put(mutating, Object.assign({ metadata: { name } }, { webhooks: [{ name: webhook, clientConfig }] }));
    }
    const clock = new FakeClock(Date.now());
    await replica(client, clock, source);
    expect(bundles(client)).toEqual([ca]);
    expect(bundlesOf(client.peek(mutating, { name: "zz-legation" }))).toEqual([`${ca}\n`]);
    client.writes.length = 0;
    await advance(clock, 60_000, () => true);
    expect(client.writes).toEqual([]);
  });

  test("is no longer trusted after its authority expired", async () => {
    const client = new RecordedHost();
    const [old, now] = [await issue(), await issue()];
    install(client, { service, caBundle: Buffer.from(old.ca).toString("base64") });
    const { source, write } = await files();
    await write(now.serving, now.ca);
    await replica(client, new FakeClock(Date.now() + 2 * DAY_MS), source);
    expect(bundles(client)).toEqual([now.ca, now.ca]);
  });

  test("prevents the start if its bundle is empty", async () => {
    const { source, write } = await files();
    await write((await issue()).serving, "");
    await expect(replica(new RecordedHost(), new FakeClock(), source)).rejects.toThrow(
      `--ca-bundle-file ${source.caFile}: holds no certificate; write the issuer's`,
    );
  });

  test("leaves the configurations alone if it has no bundle", async () => {
    const client = new RecordedHost();
    install(client, { service, caBundle: "aW5qZWN0ZWQ=" });
    const { source, write } = await files();
    const { serving, ca } = await issue();
    await write(serving, ca);
    const { caFile: _, ...rest } = source;
    const { keeper } = await replica(client, new FakeClock(), rest);
    expect(bundles(client)).toEqual(["injected", "injected"]);
    expect(keeper.trusted).toBe(true);
    expect(client.writes).toEqual([]);
  });

  test("prevents the start if it is missing", async () => {
    const source: TlsSource = { kind: "files", certFile: "/nowhere/tls.crt", keyFile: import.meta.filename };
    await expect(replica(new RecordedHost(), new FakeClock(), source)).rejects.toThrow("/nowhere/tls.crt");
  });
});
