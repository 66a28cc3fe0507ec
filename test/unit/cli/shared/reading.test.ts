import { Readable } from "node:stream";
import { expect, test } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { EXIT_CODES } from "../../../../src/cli/shared/failure.ts";
import { asViewer } from "../../../../src/cli/shared/reading.ts";
import type { KubeError, KubeErrorCode } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { replicated } from "../../../support/builders/workload.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, recordedSession } from "../session.ts";

const OF_THE_HOST = "have your account bound to the ClusterRole legation-viewer, by a ClusterRoleBinding";
const OF_ONE_NAMESPACE = "have your account bound to the ClusterRole view, by a RoleBinding in that namespace";

interface Target {
  readonly resource: string;
  readonly namespace?: string;
  readonly objectName?: string;
}

function refusal(verb: string, target: Target, code: KubeErrorCode = "Forbidden"): KubeError {
  return kubeError(code, "User x cannot", { cluster: "host", verb, ...target });
}

test.each([
  ["pods", { resource: "pods" }, OF_THE_HOST],
  ["namespaces team", { resource: "namespaces", objectName: "team" }, OF_THE_HOST],
  ["pods in team", { resource: "pods", namespace: "team" }, OF_ONE_NAMESPACE],
  ["deployments team/web", { resource: "deployments", namespace: "team", objectName: "web" }, OF_ONE_NAMESPACE],
])("names the missing role of an account that may not read %s", async (words, target, remedy) => {
  const message = `host: you may not list ${words}: User x cannot`;
  await expect(asViewer(Promise.reject(refusal("list", target)))).rejects.toMatchObject({ message, remedy });
});

test("leaves other errors unchanged", async () => {
  const error = refusal("list", { resource: "pods" }, "NotSent");
  await expect(asViewer(Promise.reject(error))).rejects.toBe(error);
});

const web = { ...replicated("Deployment", 1), metadata: { name: "web", namespace: "team" } };

/** Returns the output and exit code of a command on a host that refuses the named requests. */
async function told(
  args: readonly string[],
  refused: string,
): Promise<{ readonly code: number; readonly err: string }> {
  const answer = <T>(verb: string, target: Target, value: T): T => {
    const error = refusal(verb, target);
    if (error.target === refused) throw error;
    return value;
  };
  const client = fakeClient({
    list: async ({ plural: resource }, { namespace } = {}) =>
      answer("list", namespace === undefined ? { resource } : { resource, namespace }, {
        items: [],
        resourceVersion: "1",
        size: 0,
      }),
    find: async ({ plural: resource }, { namespace, name: objectName }) => {
      const target = namespace === undefined ? { resource, objectName } : { resource, namespace, objectName };
      return answer("get", target, resource === "deployments" ? web : undefined);
    },
  });
  const session = recordedSession({
    stdin: Readable.from([JSON.stringify(web)]),
    connect: async () => connection(client, { namespace: "team" }),
  });
  return { code: await runProgram([...args], session, "1.2.3"), err: session.err.join("") };
}

test.each([
  [["plan", "-f", "-"], "clusters", OF_THE_HOST],
  [["plan", "-f", "-"], "nodes", OF_THE_HOST],
  [["plan", "-f", "-"], "deployments team/web", OF_ONE_NAMESPACE],
  [["status", "deployment", "web"], "events in team", OF_ONE_NAMESPACE],
  [["status", "pod", "web"], "pods team/web", OF_ONE_NAMESPACE],
])("names the role for legation %j without the right to %s", async (args, refused, remedy) => {
  const { code, err } = await told(args, refused);
  expect(code).toBe(EXIT_CODES.failure);
  expect(err).toContain(refused);
  expect(err).toContain(remedy);
});

test("fails with a remedy for a manifest with nothing to plan", async () => {
  const stdin = Readable.from(["apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"]);
  const session = recordedSession({ stdin });
  expect(await runProgram(["plan", "-f", "-"], session, "1.2.3")).toBe(EXIT_CODES.failure);
  expect(session.err.join("")).toContain("give a manifest that has one");
});
