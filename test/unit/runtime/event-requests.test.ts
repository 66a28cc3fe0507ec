import { expect, test } from "vitest";
import { patchEvent } from "../../../src/runtime/event-requests.ts";
import { kubeError } from "../../support/builders/kube-error.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

const { signal } = new AbortController();
const metadata = { namespace: "team", name: "web-0.1" };

test("a patch tells an event that is not there from one that cannot be asked for", async () => {
  const patched = (code?: "NotFound" | "Forbidden") => {
    const client = fakeClient({ patch: async () => (code === undefined ? {} : Promise.reject(kubeError(code))) });
    return patchEvent(client, metadata, {}, signal);
  };
  expect([await patched(), await patched("NotFound")]).toEqual([true, false]);
  await expect(patched("Forbidden")).rejects.toMatchObject({ code: "Forbidden" });
});
