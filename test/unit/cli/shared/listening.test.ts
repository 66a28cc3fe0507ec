import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, expect, onTestFinished, test } from "vitest";
import { issueAuthority, issueServing } from "../../../../src/certificates/issue.ts";
import { COMMANDS } from "../../../../src/cli/commands.ts";
import { runProgram } from "../../../../src/cli/program.ts";
import { EXIT_CODES } from "../../../../src/cli/shared/failure.ts";
import { listenFailure } from "../../../../src/cli/shared/listening.ts";
import { connection, recordedSession } from "../session.ts";
import { temporaryFolder, unreachableHost } from "../unreachable-host.ts";

// Loaded beforehand: the import of all that a controller needs takes longer than any test.
await Promise.all(COMMANDS.map(({ load }) => load()));

/** A port that something else listens on until the test ends. */
async function busyPort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const address = server.address();
  return typeof address === "object" && address !== null ? address.port : 0;
}

/** Runs a command line that has to fail; nothing that it names can be reached. */
async function failing(...args: string[]): Promise<{ readonly exit: number; readonly said: string }> {
  const session = recordedSession({ connect: async () => connection() });
  const exit = await runProgram([...args, "--kubeconfig", unreachableHost()], session, "1.0.0");
  return { exit, said: session.err.join("\n") };
}

/** Flags for a webhook that serves with files. */
async function certificateFlags(): Promise<string[]> {
  const folder = temporaryFolder();
  const options = { now: Date.now(), lifetimeMs: 60_000 };
  const { cert, key } = await issueServing(await issueAuthority("test", options), ["127.0.0.1"], options);
  const [certFile, keyFile] = [join(folder, "tls.crt"), join(folder, "tls.key")];
  writeFileSync(certFile, cert);
  writeFileSync(keyFile, key);
  return ["--tls-cert-file", certFile, "--tls-key-file", keyFile];
}

describe("a process of Legation's that cannot listen", () => {
  test.each([
    ["controller", "--health-listen"],
    ["webhook", "--metrics-listen"],
    ["webhook", "--listen"],
  ])("names the flag of `%s` for a port in use, and how to find its process: %s", async (command, flag) => {
    const port = await busyPort();
    const files = flag === "--listen" ? await certificateFlags() : [];
    const { exit, said } = await failing(command, flag, `127.0.0.1:${port}`, ...files);
    expect(exit).toBe(EXIT_CODES.usage);
    expect(said).toContain(`${flag}: listen EADDRINUSE: address already in use 127.0.0.1:${port}`);
    expect(said).toContain("`ss -ltnp` shows who listens");
    expect(said).not.toContain("    at ");
  });

  // An address of a documentation network (RFC 5737), which no machine has.
  test.each([
    ["controller", "--health-listen"],
    ["controller", "--kubelet-listen"],
    ["webhook", "--metrics-listen"],
  ])("refuses an address of another machine in `%s`: %s", async (command, flag) => {
    const { exit, said } = await failing(command, flag, "203.0.113.9:10250");
    expect(exit).toBe(EXIT_CODES.usage);
    expect(said).toContain(`${flag}: listen EADDRNOTAVAIL: address not available 203.0.113.9:10250`);
    expect(said).toContain("an address of this machine");
  });

  test.each(["listen EACCES: permission denied 0.0.0.0:443", "getaddrinfo ENOTFOUND nowhere"])(
    "names the flag for: %s",
    (message) => {
      const [syscall] = message.split(" ");
      const failure = listenFailure("--listen", Object.assign(new Error(message), { syscall }));
      expect(failure).toMatchObject({ exit: "usage", message: `--listen: ${message}` });
    },
  );

  test("leaves other errors unchanged", () => {
    const error = Object.assign(new Error("failed"), { code: "EACCES", syscall: "open" });
    expect(listenFailure("--listen", error)).toBeUndefined();
  });
});
