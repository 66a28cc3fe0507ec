import { expect, test } from "vitest";
import { DAY_MS, hostsOf, renewalReason } from "../../../src/certificates/validity.ts";
import { secrets } from "../../../src/kube/resources.ts";
import { caBundleOf, ensureOwnMaterial, type OwnMaterial } from "../../../src/serving/certificate-secret.ts";
import { RecordedHost } from "./recorded-host.ts";

const REF = { namespace: "legation-system", name: "own-certificate" };
const NOW = Date.parse("2026-01-01T00:00:00Z");

/** Returns what a replica gets that is called by these names. */
function ensured(
  { client }: RecordedHost,
  { hosts = ["10.0.0.1"], now = NOW, served }: { hosts?: string[]; now?: number; served?: OwnMaterial } = {},
): Promise<OwnMaterial> {
  const secret = { ...REF, authority: "own" };
  return ensureOwnMaterial(client, { secret, hosts, now, served, signal: new AbortController().signal });
}

test("the certificate has the names of all replicas, under one authority", async () => {
  const host = new RecordedHost();
  const first = await ensured(host);
  const second = await ensured(host, { hosts: ["10.0.0.2"] });
  expect(hostsOf(second.certificate.cert)).toEqual(expect.arrayContaining(["10.0.0.1", "10.0.0.2"]));
  expect(second.authority).toEqual(first.authority);
  expect(await ensured(host)).toEqual(second);
  expect(host.writes).toEqual([`create secrets/${REF.name}`, `update secrets/${REF.name}`]);
});

test("the certificate is another replica's that wrote first", async () => {
  const rival = new RecordedHost();
  const theirs = await ensured(rival);
  const host = new RecordedHost();
  host.beforeWrite = () => {
    host.beforeWrite = () => {};
    host.put(secrets, rival.peek(secrets, REF) ?? {});
  };
  expect(await ensured(host)).toEqual(theirs);
});

test("a certificate past two thirds of its life is renewed by its authority, and one past its authority's by another", async () => {
  const host = new RecordedHost();
  const first = await ensured(host);
  expect(await ensured(host, { now: NOW + 49 * DAY_MS })).toEqual(first);
  const renewed = await ensured(host, { now: NOW + 51 * DAY_MS });
  expect(renewed.certificate.cert).not.toBe(first.certificate.cert);
  expect(caBundleOf(renewed)).toBe(first.authority.cert);
  const later = await ensured(host, { now: NOW + 7 * 365 * DAY_MS });
  // Replicas may still serve under the one before.
  expect(caBundleOf(later)).toBe(later.authority.cert + first.authority.cert);
  expect(later.authority.cert).not.toBe(first.authority.cert);
});

test("a deleted Secret gets what is served, and one with other content a certificate of its own", async () => {
  const host = new RecordedHost();
  const served = await ensured(host);
  host.drop(secrets, REF);
  expect(await ensured(host, { served })).toEqual(served);
  host.remake(secrets, { metadata: REF });
  const anew = await ensured(host);
  expect(anew.authority.cert).not.toBe(served.authority.cert);
  expect(renewalReason(anew.certificate.cert, { now: NOW, authority: anew.authority.cert })).toBeUndefined();
});
