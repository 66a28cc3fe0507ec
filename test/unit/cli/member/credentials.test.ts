import { expect, test } from "vitest";
import type { Cluster } from "../../../../src/api/cluster.ts";
import type { Secret, Stored } from "../../../../src/api/kubernetes.ts";
import { storedConnection } from "../../../../src/cli/member/credentials.ts";
import { cluster as clusterNamed } from "../../../support/builders/member.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection } from "../session.ts";

const secret: Secret = { metadata: {}, data: { kubeconfig: btoa("the kubeconfig") } };

function cluster(spec: Partial<Cluster["spec"]>): Stored<Cluster> {
  return clusterNamed("west", { spec: { credentialsSecret: { name: "member-west" }, ...spec } });
}

async function connectionTo(joined: Stored<Cluster> | undefined): Promise<readonly string[]> {
  const used: string[] = [];
  const context = {
    host: fakeClient({ find: async () => secret }),
    connectText: async (kubeconfig: string) => {
      used.push(kubeconfig);
      return connection();
    },
    signal: new AbortController().signal,
    report: () => {},
  };
  const found = await storedConnection(context, "west", joined);
  expect(found === undefined).toBe(used.length === 0);
  return used;
}

test("stored credentials connect to a member that is reached directly", async () => {
  expect(await connectionTo(cluster({}))).toEqual(["the kubeconfig"]);
  expect(await connectionTo(undefined)).toEqual(["the kubeconfig"]);
});

test("stored credentials do not connect to a member behind an agent, whose address only that can reach", async () => {
  expect(await connectionTo(cluster({ agent: {} }))).toEqual([]);
});
