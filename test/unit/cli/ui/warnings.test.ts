import { expect, test } from "vitest";
import { readWarnings } from "../../../../src/cli/ui/warnings.ts";
import type { ListOptions } from "../../../../src/kube/client.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";

test("reads the warnings of the shown namespace, newest first", async () => {
  const asked: (ListOptions | undefined)[] = [];
  const event = (name: string, lastTimestamp: string) => ({
    metadata: {},
    involvedObject: { kind: "Pod", namespace: "shop", name },
    reason: "Failed",
    message: "m",
    lastTimestamp,
  });
  const host = fakeClient({
    list: async (_, options) => {
      asked.push(options);
      const items = [event("old", "2026-01-01T00:00:00Z"), event("new", "2026-01-02T00:00:00Z")];
      return { items: items, resourceVersion: "1", size: 0 };
    },
  });
  const found = await readWarnings({ host, only: "shop", signal: new AbortController().signal });
  expect(found.map(({ name }) => name)).toEqual(["new", "old"]);
  expect(found[0]).toMatchObject({ kind: "Pod", namespace: "shop", reason: "Failed", count: 1 });
  expect(asked).toMatchObject([{ namespace: "shop", fieldSelector: "type=Warning" }]);
});
