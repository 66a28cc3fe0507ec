import { expect, test } from "vitest";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import type { Outcome } from "../../../../src/cli/shared/output.ts";
import { followStatus } from "../../../../src/cli/status/follow.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { recordedSession } from "../session.ts";

const CLEAR = "\u001b[H\u001b[2J";

/** Follows answers, one each two seconds, and then ends. Returns what was printed, and how it ended. */
async function followed(
  answers: readonly (Outcome | Error)[],
  { isTTY = false, format = "text" as "text" | "json" | "yaml" } = {},
): Promise<{ readonly out: string; readonly err: string; readonly ended: unknown }> {
  const clock = new FakeClock();
  const over = new AbortController();
  const session = recordedSession({ isTTY });
  const left = [...answers];
  const read = async (): Promise<Outcome> => {
    const next = left.shift();
    if (next === undefined) over.abort(new Error("over"));
    over.signal.throwIfAborted();
    if (next === undefined || next instanceof Error) throw next;
    return next;
  };
  const following = followStatus(read, { format, terminal: session.terminal, clock, signal: over.signal }).catch(
    (error: unknown) => error,
  );
  for (let second = 0; second < 2 * answers.length + 2; second++) await clock.advance(1_000);
  return { out: session.out.join(""), err: session.err.join(""), ended: await following };
}

const one = { text: "web: 1s", document: { ready: 1 } };
const older = { text: "web: 3s", document: { ready: 1 } };
const two = { text: "web: two", document: { ready: 2 } };

test("prints each change once where the result is no terminal's", async () => {
  expect(await followed([one, older, two])).toMatchObject({ out: "web: 1s\n\nweb: two\n" });
  expect((await followed([one, older, two], { format: "yaml" })).out).toBe("ready: 1\n---\nready: 2\n");
  expect((await followed([one, two], { format: "json" })).out).toBe('{\n  "ready": 1\n}\n{\n  "ready": 2\n}\n');
});

test("writes a terminal anew, also when only ages change", async () => {
  const { out } = await followed([one, older, older], { isTTY: true });
  expect(out).toBe(`${CLEAR}web: 1s\n${CLEAR}web: 3s\n`);
});

test("goes on when the host does not answer for a while, and says so once", async () => {
  const gone = kubeError("NotSent", "connection refused", { cluster: "host", verb: "list", resource: "pods" });
  const { out, err } = await followed([one, gone, gone, two]);
  expect(out).toBe("web: 1s\n\nweb: two\n");
  expect(err).toBe("host: list pods: connection refused; asking again\n");
});

test("tells the next outage again, and takes the message of the last from the screen", async () => {
  const gone = kubeError("NotSent", "connection refused", { cluster: "host", verb: "list", resource: "pods" });
  const { out, err } = await followed([one, gone, one, gone, gone, one], { isTTY: true });
  expect(out).toBe(`${CLEAR}web: 1s\n`.repeat(3));
  expect(err.match(/asking again/g)).toHaveLength(2);
  expect((await followed([one, gone, one])).out).toBe("web: 1s\n");
});

test.each([
  ["the first answer is an error", [kubeError("NotSent", "refused")], "NotSent"],
  ["a right is taken away", [one, kubeError("Forbidden", "no")], "Forbidden"],
])("ends when %s", async (_, answers, code) => {
  expect((await followed(answers)).ended).toMatchObject({ code });
});

test("ends when the object is gone", async () => {
  const gone = new Failure("failure", { object: "pod web", problem: "is not on the host" });
  expect((await followed([one, gone])).ended).toBe(gone);
});
