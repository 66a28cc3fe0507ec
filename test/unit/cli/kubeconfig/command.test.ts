import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { parse, stringify } from "yaml";
import type { Cluster } from "../../../../src/api/cluster.ts";
import { kubeconfigCommand } from "../../../../src/cli/kubeconfig/command.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, recordedSession } from "../session.ts";

const PATH = "/apis/access.legation.dev/v1/clusters/west/proxy";
let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "legation-kubeconfig-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

function write(name: string, content: object): string {
  const path = join(folder, name);
  writeFileSync(path, stringify(content));
  return path;
}

const exec = {
  apiVersion: "client.authentication.k8s.io/v1",
  command: "./bin/login",
  args: ["me"],
  provideClusterInfo: true,
};
const HOST = {
  clusters: [
    { name: "other", cluster: { server: "https://10.0.0.9" } },
    {
      name: "host",
      cluster: {
        server: "https://10.0.0.1:6443/",
        "certificate-authority": "ca.crt",
        "tls-server-name": "api",
        "disable-compression": true,
      },
    },
  ],
  users: [{ name: "me", user: { exec, as: "boss" } }],
  contexts: [{ name: "work", context: { cluster: "host", user: "me", namespace: "shop" } }],
  "current-context": "work",
};

async function kubeconfig(
  input: Record<string, unknown>,
  {
    env = {},
    clusters = [{ metadata: { name: "west" }, spec: { access: { prefix: "" } } }] as unknown as Cluster[],
  } = {},
): Promise<ReturnType<typeof parse>> {
  const client = fakeClient({
    find: async (_resource: object, { name }: { name: string }) =>
      clusters.find(({ metadata }) => metadata.name === name),
    list: async () => ({ items: clusters, resourceVersion: "1", size: 0 }),
  });
  const session = recordedSession({
    env,
    connect: async () => connection(client),
  });
  await kubeconfigCommand.run(kubeconfigCommand.input.parse({ name: "west", ...input }), session);
  return parse(session.out.join(""));
}

describe("legation kubeconfig", () => {
  test("leads to the member by the host's server, with the user's own credentials and exec plugin", async () => {
    const file = write("host.yaml", HOST);
    expect(await kubeconfig({ kubeconfig: file })).toEqual({
      apiVersion: "v1",
      kind: "Config",
      clusters: [
        {
          name: "west",
          cluster: {
            server: `https://10.0.0.1:6443${PATH}`,
            "certificate-authority": join(folder, "ca.crt"),
            "tls-server-name": "api",
            "disable-compression": true,
          },
        },
      ],
      users: [{ name: "me", user: { exec: { ...exec, command: join(folder, "bin/login") }, as: "boss" } }],
      contexts: [{ name: "west", context: { cluster: "west", user: "me", namespace: "shop" } }],
      "current-context": "west",
    });
  });

  test("reads the chosen context of several files, and names its own as told", async () => {
    mkdirSync(join(folder, "second"));
    const users = { users: [{ name: "me", user: { "client-certificate": "me.crt", "client-key": "me.key" } }] };
    const files = [write("first.yaml", { ...HOST, users: [] }), write("second/users.yaml", users)];
    const document = await kubeconfig({ context: "work", asContext: "w" }, { env: { KUBECONFIG: files.join(":") } });
    expect(document).toMatchObject({
      clusters: [{ name: "w" }],
      users: [
        { user: { "client-certificate": join(folder, "second/me.crt"), "client-key": join(folder, "second/me.key") } },
      ],
      "current-context": "w",
    });
  });

  test("refuses a member that has not joined, and one that users do not reach", async () => {
    const file = write("host.yaml", HOST);
    const closed = [{ metadata: { name: "west" }, spec: {} }] as unknown as Cluster[];
    await expect(kubeconfig({ kubeconfig: file }, { clusters: closed })).rejects.toThrow(
      /Cluster west.*spec.access.*missing/,
    );
    await expect(kubeconfig({ kubeconfig: file, name: "wets" }, { clusters: closed })).rejects.toThrow(
      /wets.*has not joined.*west/,
    );
  });

  test("tells nothing of a file that is no YAML", async () => {
    const file = join(folder, "bad.yaml");
    writeFileSync(file, "users: [secret-token: {");
    await expect(kubeconfig({ kubeconfig: file })).rejects.toThrow(/not YAML/);
  });
});
