import { expect, test } from "vitest";
import { Executor } from "../../../../src/controllers/dependencies/execute.ts";
import { type Action, copyKey } from "../../../../src/controllers/dependencies/model.ts";
import { KubeError } from "../../../../src/kube/errors.ts";
import { dependencyKey } from "../../../../src/pods/dependencies.ts";
import { createLogger } from "../../../../src/telemetry/logger.ts";
import { fakeClient } from "../../cli/client.ts";

const NO_ANSWER = 'Internal error occurred: failed calling webhook "checks.example.com": connect: connection refused';
const ref = { member: "west", kind: "ConfigMap", namespace: "team", name: "settings" } as const;
const key = copyKey("west", dependencyKey(ref));
const create = { type: "create", ref, object: {}, sourceVersion: "1" } as unknown as Action;
const patch: Action = { type: "patch", ref, uid: "uid-1", version: "1", patch: [], sourceVersion: "2" };

/** An executor and its member, which answers all writes with the words until it is mended. */
function executing() {
  let now = 0;
  let words: string | undefined = NO_ANSWER;
  const woken: string[] = [];
  const answer = (async () => {
    if (words === undefined) return { metadata: { uid: "uid-1", resourceVersion: "2" } };
    throw new KubeError(words, { code: "ServerError", cluster: "west", verb: "write", resource: "configmaps" });
  }) as never;
  const west = {
    name: "west",
    reachableSince: 0,
    client: fakeClient({ create: answer, patch: answer }),
    answerOf: (promise: Promise<unknown>) => promise,
    noteFailure: () => {},
  };
  const executor = new Executor({
    registry: { member: () => west },
    memberNamespaces: { createIn: (_m: object, _n: string, _s: object, make: () => unknown) => make() },
    hostId: "host-id",
    onRefusal: (of: string) => woken.push(of),
    clock: { now: () => now, wall: () => 0 },
  } as never);
  const log = createLogger({ level: "silent" });
  const context = { key, signal: new AbortController().signal, heardAt: 0, log };
  return {
    executor,
    woken,
    execute: (action: Action) => executor.execute(action, context),
    at: (ms: number) => {
      now = ms;
    },
    mend: () => {
      words = undefined;
    },
  };
}

test.each([
  ["made", create, "its API server refused ConfigMap settings, which the pod needs: "],
  ["changed", patch, "its API server refused the change of ConfigMap settings, which the pod needs: "],
] as const)(
  "a copy that cannot be %s since a webhook of the member does not answer is told after ten seconds",
  async (_, action, words) => {
    const { executor, woken, execute, at, mend } = executing();
    await expect(execute(action)).rejects.toThrow(NO_ANSWER);
    expect([executor.refusal(key), woken]).toEqual([undefined, []]);
    at(12_000);
    await execute(action);
    expect(executor.refusal(key)).toMatchObject({ message: `${words}${NO_ANSWER}`, inPlace: false, until: 42_000 });
    expect(woken).toEqual([key]);

    expect(executor.refusal(key)).not.toHaveProperty("version");

    // Tried again, and told at once: it has not changed.
    at(42_000);
    await execute({ type: "reconsider", ref });
    expect(executor.refusal(key)).toBeUndefined();
    await execute(action);
    expect(executor.refusal(key)?.until).toBe(72_000);

    at(72_000);
    await execute({ type: "reconsider", ref });
    mend();
    await execute(action);
    expect(executor.refusal(key)).toBeUndefined();
  },
);
