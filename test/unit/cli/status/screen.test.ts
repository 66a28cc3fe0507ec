import { expect, test } from "vitest";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { age, type Outcome } from "../../../../src/cli/shared/output.ts";
import { Screen, showFollowing } from "../../../../src/cli/status/screen.ts";
import type { KubeError, KubeErrorCode } from "../../../../src/kube/errors.ts";
import { kubeError } from "../../../support/builders/kube-error.ts";
import { FakeClock } from "../../../support/clock/fake-clock.ts";
import { recordedSession } from "../session.ts";

const one = { text: "one", document: { n: 1 } };
const two = { text: "two", document: { n: 2 } };

test.each([
  ["text", false, "one\n\ntwo\n"],
  ["text", true, "\u001B[H\u001B[2Jone\n\u001B[H\u001B[2Jtwo\n"],
  ["yaml", false, "n: 1\n---\nn: 2\n"],
  ["json", false, '{\n  "n": 1\n}\n{\n  "n": 2\n}\n'],
] as const)("shows every change once as %s (terminal: %s)", (format, isTTY, expected) => {
  const session = recordedSession({ isTTY });
  const screen = new Screen(session.terminal, format);
  for (const outcome of [one, one, two, two]) screen.show(outcome);
  expect(session.out.join("")).toBe(expected);
});

function failed(code: KubeErrorCode): KubeError {
  return kubeError(code, code, { cluster: "host", verb: "get", namespace: "shop", objectName: "web" });
}

/** Follows what is read, one after another; what is no outcome is thrown. After the last it is interrupted. */
async function follow(reads: readonly (Outcome | Error)[]): Promise<{ out: string; err: string[]; end: unknown }> {
  const interruption = new AbortController();
  const session = recordedSession({ signal: interruption.signal });
  const clock = new FakeClock();
  const left = [...reads];
  const read = async (): Promise<Outcome> => {
    const next = left.shift();
    if (next === undefined) interruption.abort("enough");
    interruption.signal.throwIfAborted();
    if (next instanceof Error || next === undefined) throw next;
    return next;
  };
  const ended = showFollowing({ watch: true, output: "text" }, session, 1_000, read, clock).catch((end) => end);
  await clock.advance(60_000);
  return { out: session.out.join(""), err: session.err, end: await ended };
}

test("goes on after an API server failed, and reports each failure once", async () => {
  const lost = failed("NotSent");
  expect(await follow([one, lost, lost, failed("ServerError"), two, lost, two])).toEqual({
    out: "one\n\ntwo\n",
    err: [
      "host: get pods shop/web: NotSent; what is shown is old, and is read again\n",
      "host: get pods shop/web: ServerError; what is shown is old, and is read again\n",
      "the host answers again\n",
      "host: get pods shop/web: NotSent; what is shown is old, and is read again\n",
      "the host answers again\n",
    ],
    end: "enough",
  });
});

const gone = new Failure("failure", { object: "pod shop/web", problem: "is not on the host" });
test.each([
  ["that the first time fails", [failed("NotSent")], "NotSent"],
  ["that may not be read any more", [one, failed("Forbidden")], "Forbidden"],
  ["that is gone", [one, gone], "is not on the host"],
])("ends the command for an object %s", async (_, reads, message) => {
  expect((await follow([...reads, two])).end).toMatchObject({ message: expect.stringContaining(message) });
});

test.each([
  [0, "0s"],
  [119_000, "119s"],
  [120_000, "2m"],
  [150_000, "2m30s"],
  [3_600_000, "60m"],
  [3 * 3_600_000 + 60_000, "3h1m"],
  [30 * 3_600_000, "30h"],
  [72 * 3_600_000, "3d"],
  [-5, "0s"],
])("formats %d ms as %s", (milliseconds, expected) => {
  expect(age(milliseconds)).toBe(expected);
});
