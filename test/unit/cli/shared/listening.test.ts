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
import { recordedSession } from "../session.ts";
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
  const session = recordedSession({ connect: async () => ({}) as never });
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
    expect(said).toContain(
      `${flag}: 127.0.0.1:${port} is in use by another process, probably an earlier one of Legation's that still runs`,
    );
    expect(said).toContain(`\`ss -ltnp 'sport = :${port}'\` shows which: stop it, or write another port`);
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
    expect(said).toContain(`${flag}: 203.0.113.9:10250 is no address of this machine`);
    expect(said).toContain("write one that `ip address` shows, or :PORT for all of them");
  });

  test.each([
    ["EACCES", "listen", "[::1]:443 is not allowed for this user", "from 1024 on"],
    ["EAFNOSUPPORT", "listen", "[::1]:443 is no address of this machine", "`ip address`"],
    ["ENOTFOUND", "getaddrinfo", "[::1]:443 is a name that this machine cannot resolve", "an IP address"],
  ])("has a remedy for %s", (code, syscall, problem, remedy) => {
    const error = Object.assign(new Error("failed"), { code, syscall });
    const failure = listenFailure("--listen", { host: "::1", port: 443 }, error);
    expect(failure).toMatchObject({ exit: "usage", message: `--listen: ${problem}` });
    expect(failure?.remedy).toContain(remedy);
  });

  test("leaves other errors unchanged", () => {
    const error = Object.assign(new Error("failed"), { code: "EACCES", syscall: "open" });
    expect(listenFailure("--listen", { host: "::1", port: 443 }, error)).toBeUndefined();
  });
});
