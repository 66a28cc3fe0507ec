import { expect, test } from "vitest";
import { INSTALLED_LABELS } from "../../../../src/api/keys.ts";
import { prepareWebhooks } from "../../../../src/cli/install/webhooks.ts";
import { Discovery } from "../../../../src/cli/shared/discovery.ts";
import type { Patch } from "../../../../src/kube/client.ts";
import { discovering } from "../../../support/builders/discovery.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const KIND = { apiVersion: "admissionregistration.k8s.io/v1", kind: "MutatingWebhookConfiguration" };
const service = { namespace: "legation-system", name: "legation-webhook" };

interface Entry {
  readonly name: string;
  readonly clientConfig: object;
}

/** Returns the writes to a configuration with the `found` entries before the `wanted` ones are applied. */
async function prepared(
  found: readonly Entry[] | undefined,
  wanted: readonly Entry[],
  others: readonly Entry[] = [],
): Promise<object | undefined> {
  let written: Pick<Patch, "body"> | undefined;
  const client = fakeClient({
    raw: discovering({
      group: "admissionregistration.k8s.io",
      plural: "mutatingwebhookconfigurations",
      kind: KIND.kind,
      namespaced: false,
    }),
    find: async () => found && { ...KIND, metadata: { name: "legation" }, webhooks: found },
    list: async () => ({
      items: [{ metadata: { name: "other", labels: INSTALLED_LABELS }, webhooks: others }],
      resourceVersion: "1",
    }),
    create: async (_resource, body) => {
      written = { body };
      return {};
    },
    patch: async (_resource, _ref, patch) => {
      written = patch;
      return {};
    },
  });
  const manifest = { ...KIND, metadata: { name: "legation" }, webhooks: wanted };
  await prepareWebhooks(manifest, { client, discovery: new Discovery(client, signal), signal });
  return written?.body;
}

const entry = (name: string, clientConfig: object = { service, caBundle: "YQ==" }): Entry => ({ name, clientConfig });

test("writes nothing where the entries are those of the manifest", async () => {
  expect(await prepared([entry("a.legation.dev")], [entry("a.legation.dev", { service })])).toBeUndefined();
});

test("gives a new entry the caBundle of the others", async () => {
  const wanted = [entry("a.legation.dev", { service }), entry("b.legation.dev", { service })];
  expect(await prepared([entry("a.legation.dev")], wanted)).toEqual({ webhooks: [entry("b.legation.dev")] });
});

test("gives a new configuration the caBundle of another", async () => {
  const wanted = [entry("a.legation.dev", { service })];
  expect(await prepared(undefined, wanted, [entry("b.legation.dev")])).toMatchObject({
    metadata: { name: "legation" },
    webhooks: [entry("a.legation.dev")],
  });
  expect(await prepared(undefined, wanted)).toBeUndefined();
});

test("removes an entry of another version, whoever owns its fields, and keeps foreign ones", async () => {
  const found = [entry("a.legation.dev"), entry("a-again.legation.dev"), entry("b.example.com")];
  expect(await prepared(found, [entry("a.legation.dev", { service })])).toEqual({
    webhooks: [{ $patch: "delete", name: "a-again.legation.dev" }],
  });
});
