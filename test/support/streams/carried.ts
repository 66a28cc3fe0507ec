import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { eventuallyPasses } from "../harness/wait.ts";
import type { Ran, StreamingKubectl, Transport } from "./kubectl.ts";

/** Ways to run kubectl where pod `web` is the one of `servingPod`. */
export interface StreamCommands {
  /** Starts a kubectl, which ends with the test. */
  readonly open: (transport: Transport, ...args: string[]) => StreamingKubectl;
  /** Runs a kubectl to its end. */
  readonly run: (transport: Transport, args: readonly string[], input?: Buffer | string) => Promise<Ran>;
  /** Returns the results here and on a plain cluster. */
  readonly both: (transport: Transport, args: readonly string[], input?: string) => Promise<[unknown, unknown]>;
}

/** Defines the tests of exec, attach, port-forward and cp. */
export function testCarriedStreams(transport: Transport, { open, run, both }: StreamCommands): void {
  test("carry both outputs, the input and the exit code of exec", async () => {
    const [here, there] = await both(
      transport,
      ["exec", "-i", "web", "-c", "main", "--", "sh", "-c", "cat; echo oops >&2; exit 7"],
      "told\n",
    );
    expect(here).toEqual({ code: 7, stdout: "told\n", stderr: expect.stringContaining("oops\n") });
    expect(here).toEqual(there);
  });

  test("carry input and output of attach until the user ends it", async () => {
    const running = open(transport, "attach", "-i", "web", "-c", "parrot");
    // Output from before the stream is lost on any cluster.
    await eventuallyPasses(() => {
      running.write(`hello by ${transport}\n`);
      expect(running.said).toContain(`polly: hello by ${transport}\n`);
    });
    running.write("and again\n");
    await running.says(/polly: and again\n/);
  });

  test("serve many connections of port-forward, and one to a closed port", async () => {
    const running = open(transport, "port-forward", "pod/web", ":8080", ":9");
    const [, web] = await running.says(/127\.0\.0\.1:(\d+) -> 8080/);
    const [, nobody] = await running.says(/127\.0\.0\.1:(\d+) -> 9/);
    const pages = Array.from({ length: 10 }, async () => (await fetch(`http://127.0.0.1:${web}/`)).text());
    expect(await Promise.all(pages)).toEqual(pages.map(() => "hello from the pod\n"));
    await expect(fetch(`http://127.0.0.1:${nobody}/`)).rejects.toThrow();
    await running.says(/an error occurred forwarding \d+ -> 9: .*connection refused/i);
  });

  test("carry cp in both directions", async () => {
    const folder = mkdtempSync(join(tmpdir(), "legation-cp-"));
    onTestFinished(() => rmSync(folder, { recursive: true }));
    const bytes = randomBytes(2 ** 20);
    writeFileSync(join(folder, "there"), bytes);
    for (const files of [
      [join(folder, "there"), `web:/tmp/copy-${transport}`],
      [`web:/tmp/copy-${transport}`, join(folder, "back")],
    ]) {
      const copied = await run(transport, ["cp", "-c", "main", ...files]);
      expect(copied.code, copied.stderr).toBe(0);
    }
    expect(readFileSync(join(folder, "back")).equals(bytes)).toBe(true);
  });
}
