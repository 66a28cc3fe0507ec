import { expect, test } from "vitest";
import { runProgram } from "../../../../src/cli/program.ts";
import { fakeClient } from "../../../support/clients/fake-client.ts";
import { connection, recordedSession } from "../session.ts";

const asked: { plural: string; namespace: string | undefined; context: string | undefined }[] = [];

/** Returns the words that complete a line. The host has two objects of each type. */
async function completed(...words: string[]): Promise<string[]> {
  const session = recordedSession({
    connect: async ({ context }) => {
      const client = fakeClient({
        list: async ({ plural }, { namespace } = {}) => {
          asked.push({ plural, namespace, context });
          const named = (name: string) => ({ metadata: { name, uid: name, resourceVersion: "1" } });
          return { items: [named(`${plural}-a`), named("other")], resourceVersion: "1", size: 0 };
        },
      });
      return connection(client);
    },
  });
  expect(await runProgram(["__complete", ...words], session, "1")).toBe(0);
  return session.out
    .join("")
    .split("\n")
    .filter(Boolean)
    .map((line) => line.split("\t", 1)[0] ?? "");
}

test.each([
  ["commands", ["unj"], ["unjoin"]],
  ["every command", [""], expect.arrayContaining(["install", "status", "completion"])],
  ["global flags before a command", ["--cont"], ["--context"]],
  ["a command's flags", ["status", "--name"], ["--namespace"]],
  ["global flags behind a command", ["status", "--kubec"], ["--kubeconfig"]],
  ["members", ["unjoin", ""], ["clusters-a", "other"]],
  ["members behind a flag with a value", ["--context", "c", "unjoin", "cl"], ["clusters-a"]],
  ["namespaces", ["status", "-n", "name"], ["namespaces-a"]],
  ["namespaces of another command", ["plan", "-f", "x", "--namespace", ""], ["namespaces-a", "other"]],
  ["members of doctor and get", ["doctor", "--members", ""], ["clusters-a", "other"]],
  ["members to read", ["get", "pods", "--clusters", "clus"], ["clusters-a"]],
  ["kinds", ["status", "po"], ["pod"]],
  ["every kind that status shows, and no DaemonSet", ["status", "d"], ["deployment"]],
  ["objects of a kind by its short name", ["status", "po", ""], ["pods-a", "other"]],
  ["objects of a kind", ["status", "pod", ""], ["pods-a", "other"]],
  ["formats", ["status", "-o", ""], ["wide", "json", "yaml"]],
  ["formats before a command", ["--output", "j"], ["json"]],
  ["formats of get", ["get", "pods", "-o", ""], ["wide", "json", "yaml", "name"]],
  ["nothing for an unknown command", ["nonsense", ""], []],
  ["nothing beyond the last argument", ["unjoin", "west", ""], []],
  ["nothing for a flag's value that is no name", ["unjoin", "west", "--member-kubeconfig", ""], []],
])("completes %s", async (_, words, expected) => {
  expect(await completed(...words)).toEqual(expected);
});

test("reads pods of the line's namespace, with the line's context", async () => {
  asked.length = 0;
  await completed("status", "-n", "shop", "--context=far", "pod", "");
  expect(asked).toEqual([{ plural: "pods", namespace: "shop", context: "far" }]);
});

test("completes nothing when the host cannot be reached", async () => {
  const session = recordedSession();
  expect(await runProgram(["__complete", "unjoin", ""], session, "1")).toBe(0);
  expect([session.out, session.err]).toEqual([[], []]);
});
