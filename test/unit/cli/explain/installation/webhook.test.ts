import { describe, expect, test } from "vitest";
import { issueAuthority, issueServing } from "../../../../../src/certificates/issue.ts";
import {
  configurationFindings,
  podFindings,
  reachFindings,
  trustFindings,
} from "../../../../../src/cli/explain/installation/webhook.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { ago, NOW, refusing, signal, stored } from "./given.ts";

const namespace = { metadata: { name: "shop", ...stored } };
const life = ago(0);
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

test("the certificate of the webhook is that of the Secret which the Deployment mounts", async () => {
  const host = await hostWith([{ name: "tls", secret: { secretName: "legation-webhook-tls" } }]);
  const found = await configurationFindings(host, context);
  expect(found.map(({ state }) => state)).toEqual(["OK", "OK", "OK", "OK"]);
  expect(found.at(-1)?.what).toContain("legation-system/legation-webhook-tls) is valid until");
});

test("the certificate of the webhook is not judged where another kind of volume has it", async () => {
  const found = await configurationFindings(await hostWith([{ name: "tls", csi: {} }]), context);
  expect(found.map(({ state }) => state)).toEqual(["OK", "OK", "OK", "SKIP"]);
});

describe("the webhook's caBundle", () => {
  const entry = (name: string, pem: string) => ({
    name,
    clientConfig: { url: "https://h/", caBundle: Buffer.from(pem).toString("base64") },
  });

  test("holds the webhook's own authority, in every entry", async () => {
    const [own, other] = [await issueAuthority("own", ago(0)), await issueAuthority("other", ago(0))];
    const options = { authority: own.cert, now: NOW, remedy: "restart", repair: "legation install" };
    const judge = (...pems: string[]) =>
      trustFindings(
        "it",
        pems.map((pem, index) => entry(`e${index}`, pem)),
        options,
      );
    expect(judge(own.cert + other.cert, `${own.cert}\n`)).toMatchObject([{ state: "OK" }]);
    expect(judge(own.cert, other.cert)).toMatchObject([
      { state: "FAIL", what: expect.stringContaining("the caBundle of e1 does not have"), remedy: "restart" },
    ]);
    expect(judge(own.cert, "")).toMatchObject([{ state: "FAIL", what: expect.stringContaining("no caBundle in e1") }]);
    expect(judge()).toMatchObject([{ state: "FAIL", remedy: "legation install" }]);
  });
});

describe("the webhook", () => {
  const context = { now: 0, url: "https://127.0.0.1:1", repair: "legation install", namespace, signal };
  const denied = 'admission webhook "namespaces.legation.dev" denied the request: annotation';
  const failed = 'failed calling webhook "namespaces.legation.dev": connect: connection refused';
  const ofKyverno = 'admission webhook "validate.kyverno.svc-fail" denied the request: label team is required';
  const kyvernoIsDown = 'failed calling webhook "validate.kyverno.svc-fail": connect: connection refused';
  const policy =
    "ValidatingAdmissionPolicy 'legation-delegation' with binding 'legation-delegation' denied request: no";

  test.each([
    ["denies the Namespace", refusing("Unprocessable", denied), "OK"],
    ["is down", refusing("ServerError", failed), "FAIL"],
    ["is hidden by another refusal", refusing("Unprocessable", "no"), "SKIP"],
    ["is hidden by another webhook's refusal", refusing("Forbidden", ofKyverno), "SKIP"],
    ["is hidden by another webhook that is down", refusing("ServerError", kyvernoIsDown), "SKIP"],
  ])("%s", async (_, create, state) => {
    expect(await reachFindings(fakeClient({ create }), context)).toMatchObject([{ state }]);
  });

  test("is not called where its configuration is gone", async () => {
    const asked: unknown[] = [];
    const client = fakeClient({
      create: async (_resource, object, options) => {
        asked.push(options?.dryRun);
        return object;
      },
    });
    expect(await reachFindings(client, context)).toMatchObject([{ state: "FAIL", remedy: "legation install" }]);
    expect(asked).toEqual([true]);
  });

  test.each([
    ["takes a pod", { labels: { "legation.dev/proxy": "true" } }, "OK"],
    ["leaves a pod alone", {}, "FAIL"],
  ])("%s", async (_, metadata, state) => {
    const client = fakeClient({ create: async () => ({ metadata: { name: "p", ...stored, ...metadata } }) });
    expect(await podFindings(client, context)).toMatchObject([{ state }]);
  });

  test.each([
    ["Legation's policy", policy, "FAIL"],
    ["Legation's webhook", denied, "FAIL"],
    ["another webhook", ofKyverno, "WARN"],
    ["another webhook that is down", kyvernoIsDown, "WARN"],
    ["a quota", 'pods "x" is forbidden: exceeded quota: small', "WARN"],
  ])("is told from %s that refuses a pod", async (_, detail, state) => {
    expect(await podFindings(fakeClient({ create: refusing("Forbidden", detail) }), context)).toMatchObject([
      { state },
    ]);
  });

  test("has no pod to try without an opted-in namespace", async () => {
    expect(await podFindings(fakeClient({}), { ...context, namespace: undefined })).toMatchObject([{ state: "SKIP" }]);
  });
});
