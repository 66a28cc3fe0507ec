import { expect, test } from "vitest";
import { issueAuthority, issueServing } from "../../../../src/certificates/issue.ts";
import { configurationFindings } from "../../../../src/cli/doctor/webhook.ts";
import { fakeClient } from "../client.ts";

const { signal } = new AbortController();
const NOW = Date.parse("2026-11-27T12:00:00Z");
const life = { now: NOW, lifetimeMs: 90 * 24 * 60 * 60_000 };
const context = { now: NOW, url: undefined, repair: "legation install", namespace: undefined, signal };
const base64 = (text: string): string => Buffer.from(text).toString("base64");

const env = [
  { name: "LEGATION_TLS_CERT_FILE", value: "/tls/tls.crt" },
  { name: "LEGATION_CA_BUNDLE_FILE", value: "/tls/ca.crt" },
];

/** A host whose webhook once made a certificate itself, and now has one of cert-manager. */
async function hostWith(volumes: readonly object[]) {
  const [own, issuer] = [await issueAuthority("old", life), await issueAuthority("issuer", life)];
  const secretOf = async (authority: typeof own) => {
    const { cert } = await issueServing(authority, ["h"], life);
    return { data: { "ca.crt": base64(authority.cert), "tls.crt": base64(cert) } };
  };
  const volumeMounts = [{ name: "tls", mountPath: "/tls" }];
  const spec = { template: { spec: { containers: [{ env, volumeMounts }], volumes } } };
  const webhooks = [{ name: "namespaces.legation.dev", clientConfig: { caBundle: base64(issuer.cert) } }];
  const secrets: Record<string, object> = {
    "legation-webhook-certificate": await secretOf(own),
    "legation-webhook-tls": await secretOf(issuer),
  };
  return fakeClient({
    find: async ({ plural }: { plural: string }, { name }: { name: string }) =>
      plural === "deployments" ? { spec } : plural === "secrets" ? secrets[name] : { webhooks },
  });
}

test("is that of the Secret which the Deployment mounts", async () => {
  const host = await hostWith([{ name: "tls", secret: { secretName: "legation-webhook-tls" } }]);
  const found = await configurationFindings(host, context);
  expect(found.map(({ state }) => state)).toEqual(["OK", "OK", "OK", "OK"]);
  expect(found.at(-1)?.what).toContain("legation-system/legation-webhook-tls) is valid until");
});

test("is not judged where another kind of volume has it", async () => {
  const found = await configurationFindings(await hostWith([{ name: "tls", csi: {} }]), context);
  expect(found.map(({ state }) => state)).toEqual(["OK", "OK", "OK", "SKIP"]);
});
