import { describe, expect, test } from "vitest";
import { issueAuthority, issueServing } from "../../../../../src/certificates/issue.ts";
import { accessFindings } from "../../../../../src/cli/explain/installation/access.ts";
import { fakeClient } from "../../../../support/clients/fake-client.ts";
import { NOW, refusing, signal } from "./given.ts";

const YEAR = 365 * 24 * 60 * 60_000;
const base64 = (text: string): string => Buffer.from(text).toString("base64");

/** A host whose `legation access` once made a certificate, which is expired, and now has one of files. */
async function hostWith(volumes: readonly object[], { mounted = true } = {}) {
  const secretFrom = async (now: number) => {
    const life = { now, lifetimeMs: YEAR / 4 };
    const { cert } = await issueServing(await issueAuthority("a", life), ["h"], life);
    return { data: { "tls.crt": base64(cert) } };
  };
  const env = mounted ? [{ name: "LEGATION_TLS_CERT_FILE", value: "/tls/tls.crt" }] : [];
  const container = { env, volumeMounts: [{ name: "tls", mountPath: "/tls" }] };
  const secrets: Record<string, object> = {
    "legation-access-certificate": await secretFrom(NOW - YEAR),
    "legation-access-tls": await secretFrom(NOW),
  };
  const find = async ({ plural }: { plural: string }, { name }: { name: string }): Promise<object | undefined> => {
    if (plural === "apiservices") return { status: { conditions: [{ type: "Available", status: "True" }] } };
    return plural === "deployments"
      ? { spec: { template: { spec: { containers: [container], volumes } } } }
      : secrets[name];
  };
  return fakeClient({ find });
}

test("the certificate of access is that of the Secret which the Deployment mounts", async () => {
  const host = await hostWith([{ name: "tls", secret: { secretName: "legation-access-tls" } }]);
  const found = await accessFindings(host, { now: NOW, signal });
  expect(found.map(({ state }) => state)).toEqual(["OK", "OK"]);
  expect(found.at(-1)?.what).toContain("legation-access/legation-access-tls) is valid until");
});

test.each([
  ["is not judged where another kind of volume has it", [{ name: "tls", csi: {} }], "SKIP"],
  ["is missed where the mounted Secret is", [{ name: "tls", secret: { secretName: "other" } }], "FAIL"],
])("the certificate of access %s", async (_name, volumes, state) => {
  const found = await accessFindings(await hostWith(volumes), { now: NOW, signal });
  expect(found.map((finding) => finding.state)).toEqual(["OK", state]);
});

test("is its own where none is mounted", async () => {
  const found = await accessFindings(await hostWith([], { mounted: false }), { now: NOW, signal });
  expect(found.map(({ state }) => state)).toEqual(["OK", "FAIL"]);
});

describe("with few rights", () => {
  test("the availability of access is told without its certificate", async () => {
    const conditions = [{ type: "Available", status: "False", message: "no endpoints" }];
    const client = fakeClient({
      find: async ({ plural }: { plural: string }) =>
        plural === "secrets" ? await refusing("Forbidden", "no")() : { status: { conditions } },
    });
    expect(await accessFindings(client, { now: 0, signal })).toMatchObject([{ state: "FAIL" }, { state: "SKIP" }]);
  });
});
