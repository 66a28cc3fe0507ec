import { describe, expect, test } from "vitest";
import type { Pod, Stored } from "../../../../src/api/kubernetes.ts";
import { apiSecret, issueTokens } from "../../../../src/controllers/home-api/issue.ts";
import type { ClusterClient } from "../../../../src/kube/client.ts";
import { HOST } from "../../../support/builders/claim.ts";
import { proxyPod } from "../../../support/builders/pod.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const NOW = Date.parse("2026-01-01T00:00:00Z");
const HOUR_MS = 3_600_000;
const AUTHORITY = "-----BEGIN CERTIFICATE-----";

interface Token {
  readonly path: string;
  readonly audience?: string;
  readonly expirationSeconds?: number;
}

/** Returns a pod of the account `robot` that mounts these tokens. */
function mounting(tokens: readonly Token[], serviceAccountName: string | undefined = "robot"): Stored<Pod> {
  const sources = tokens.map((serviceAccountToken) => ({ serviceAccountToken }));
  const account = serviceAccountName === "" ? {} : { serviceAccountName };
  return proxyPod({ spec: { ...account, volumes: [{ name: "api", projected: { sources } }] } });
}

/** Returns the token requests to the host, which grants the requested lifetimes. */
async function issued(proxy: Stored<Pod>, authority?: string) {
  const asked: { readonly account: string; readonly spec: object }[] = [];
  const createSubresource: ClusterClient["createSubresource"] = async ({ plural }, ref, subresource, body) => {
    const { spec = { expirationSeconds: 0 } }: { readonly spec?: { readonly expirationSeconds: number } } = body;
    asked.push({ account: `${plural}/${ref.namespace}/${ref.name}/${subresource}`, spec });
    const expirationTimestamp = new Date(NOW + spec.expirationSeconds * 1000).toISOString();
    return { spec, status: { token: `token ${asked.length}`, expirationTimestamp } };
  };
  const host = fakeClient({ createSubresource });
  const signal = new AbortController().signal;
  return { asked, ...(await issueTokens(host, proxy, authority, { now: NOW, signal })) };
}

describe("a pod's token", () => {
  test("is its own account's, for the named audience, and void without that very pod", async () => {
    const { asked, data } = await issued(mounting([{ path: "vault", audience: "vault.example" }, { path: "token" }]));
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "web-0", uid: "uid-1" };
    expect(asked).toEqual([
      {
        account: "serviceaccounts/team/robot/token",
        spec: { audiences: ["vault.example"], expirationSeconds: 3600, boundObjectRef },
      },
      { account: "serviceaccounts/team/robot/token", spec: { audiences: [], expirationSeconds: 3600, boundObjectRef } },
    ]);
    expect(Object.values(data).map((text) => atob(text))).toEqual(["token 1", "token 2"]);
  });

  test("is the account `default`'s if the pod names none", async () => {
    const { asked } = await issued(mounting([{ path: "token" }], ""));
    expect(asked.map(({ account }) => account)).toEqual(["serviceaccounts/team/default/token"]);
  });

  test("is renewed in time for the one that ends first", async () => {
    const { expiresAt, lifetimeMs } = await issued(
      mounting([
        { path: "long", expirationSeconds: 7200 },
        { path: "short", expirationSeconds: 600 },
      ]),
    );
    expect([expiresAt, lifetimeMs]).toEqual([NOW + 600_000, 600_000]);
  });
});

test("renews the authority of a pod without tokens each day", async () => {
  const { asked, data, expiresAt, lifetimeMs } = await issued(mounting([]), AUTHORITY);
  expect(asked).toEqual([]);
  expect(data).toEqual({ "ca.crt": btoa(AUTHORITY) });
  expect([expiresAt, lifetimeMs]).toEqual([NOW + 24 * HOUR_MS, 24 * HOUR_MS]);
});

test("lets a delegate own its Secret", () => {
  const { metadata } = apiSecret(proxyPod(), HOST, { delegateUid: "delegate-uid", data: {}, renewAt: "later" });
  expect(metadata).toMatchObject({
    name: "legation-api-uid-1",
    namespace: "team",
    labels: { "legation.dev/host": HOST.id },
    ownerReferences: [{ apiVersion: "v1", kind: "Pod", name: "web-0", uid: "delegate-uid" }],
  });
  expect(JSON.parse(metadata?.annotations?.["legation.dev/owner"] ?? "")).toMatchObject({
    name: "web-0",
    uid: "uid-1",
  });
});
