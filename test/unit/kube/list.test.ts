import { expect, test } from "vitest";
import type { ListOptions } from "../../../src/kube/client.ts";
import { listAll } from "../../../src/kube/list.ts";
import { nodes } from "../../../src/kube/resources.ts";
import { fakeClient } from "../../support/clients/fake-client.ts";

test("reads page by page, with a longer deadline for each", async () => {
  const asked: (ListOptions | undefined)[] = [];
  const page = (name: string, next: object) => ({ items: [{ metadata: { name } }], ...next });
  const client = fakeClient({
    list: async (_resource, options) => {
      asked.push(options);
      return asked.length === 1 ? page("a", { continue: "more" }) : page("b", {});
    },
  });
  const found = await listAll(client, nodes, { labelSelector: "a=b" });
  expect(found.map(({ metadata }) => metadata.name)).toEqual(["a", "b"]);
  const each = { labelSelector: "a=b", limit: 500, timeoutMs: 30_000 };
  expect(asked).toEqual([each, { ...each, continue: "more" }]);
});
