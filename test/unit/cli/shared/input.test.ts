import { Command } from "commander";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { flag, readInput } from "../../../../src/cli/shared/command.ts";
import { Failure } from "../../../../src/cli/shared/failure.ts";
import { duration, everyAddress, listenAddress, toggle } from "../../../../src/cli/shared/input.ts";
import type { Environment } from "../../../../src/cli/shared/session.ts";

const schema = z.object({
  name: z.string().optional(),
  force: toggle,
  timeout: duration.optional(),
  webhookUrl: z.string().optional(),
});

async function read(args: string[], env: Environment = {}): Promise<z.output<typeof schema>> {
  const read = Promise.withResolvers<z.output<typeof schema>>();
  const program = new Command("legation").exitOverride().addOption(flag("--webhook-url <url>", "address"));
  program
    .command("act")
    .argument("[name]")
    .addOption(flag("--force", "anyway"))
    .addOption(flag("--timeout <duration>", "how long"))
    .action((name, _options, command: Command) => read.resolve(readInput(command, { name }, env, schema)));
  await program.parseAsync(["act", ...args], { from: "user" });
  return read.promise;
}

describe("flags and environment variables", () => {
  test("an environment variable stands for a flag that is not given", async () => {
    const input = await read(["x"], { LEGATION_TIMEOUT: "2m", LEGATION_WEBHOOK_URL: "https://h" });
    expect(input).toEqual({ name: "x", force: false, timeout: 120_000, webhookUrl: "https://h" });
  });

  test("a flag comes before its environment variable, also when it belongs to the parent", async () => {
    const env = { LEGATION_TIMEOUT: "2m", LEGATION_WEBHOOK_URL: "https://h" };
    const input = await read(["--timeout", "1s", "--webhook-url", "https://i"], env);
    expect(input).toMatchObject({ timeout: 1000, webhookUrl: "https://i" });
  });

  test.each([
    ["true", true],
    ["1", true],
    ["YES", true],
    ["false", false],
    ["0", false],
    ["no", false],
    ["", false],
  ])("LEGATION_FORCE=%s means %s", async (value, expected) => {
    expect((await read([], { LEGATION_FORCE: value })).force).toBe(expected);
  });

  test("every problem is named with the flag or the variable that it came from", async () => {
    const failed = read(["--timeout", "soon"], { LEGATION_FORCE: "perhaps" });
    await expect(failed).rejects.toThrow(Failure);
    await expect(failed).rejects.toThrow(/--timeout: "soon" is not a duration/);
    await expect(failed).rejects.toThrow(/LEGATION_FORCE: "perhaps" is neither true nor false/);
  });

  test("the help of a flag names its variable", () => {
    expect(flag("-o, --member-kubeconfig <file>", "kubeconfig").description).toBe(
      "kubeconfig [LEGATION_MEMBER_KUBECONFIG]",
    );
  });
});

describe("durations", () => {
  test.each([
    ["90", 90_000],
    ["90s", 90_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["500ms", 500],
  ])("%s is %d ms", (text, expected) => {
    expect(duration.parse(text)).toBe(expected);
  });

  test.each(["", "0", "-1s", "1d", "1 m", "m"])("%j is refused", (text) => {
    expect(duration.safeParse(text).success).toBe(false);
  });
});

describe("addresses to listen on", () => {
  test.each([
    ["127.0.0.1:8443", { host: "127.0.0.1", port: 8443 }],
    ["[::1]:8443", { host: "::1", port: 8443 }],
    ["localhost:1", { host: "localhost", port: 1 }],
    [":8443", { host: everyAddress(), port: 8443 }],
  ])("%s is understood", (text, expected) => {
    expect(listenAddress.parse(text)).toEqual(expected);
  });

  test("every address is :: where there is IPv6, and 0.0.0.0 on a machine without it", () => {
    const rest = { netmask: "", mac: "", internal: true, cidr: null };
    const ipv4 = { ...rest, family: "IPv4" as const, address: "127.0.0.1" };
    const ipv6 = { ...rest, family: "IPv6" as const, address: "::1", scopeid: 0 };
    expect(everyAddress({ lo: [ipv4, ipv6] })).toBe("::");
    expect(everyAddress({ lo: [ipv4] })).toBe("0.0.0.0");
  });

  test.each(["8443", "::1:8443", "127.0.0.1:65536", "127.0.0.1:", "https://h:1"])("%j is refused", (text) => {
    expect(listenAddress.safeParse(text).success).toBe(false);
  });
});
